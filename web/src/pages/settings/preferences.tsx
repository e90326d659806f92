import { useState } from "preact/hooks";
import { formatTime, toUtc } from "../../model/times";
import { secondNow } from "../../state/clock";
import { isZone, prefs, setPrefs, type Prefs } from "../../state/prefs";
import { Button } from "../../ui/button";
import { Checkbox, Field, Select, TextInput } from "../../ui/field";

const THEMES: readonly { readonly value: Prefs["theme"]; readonly label: string }[] = [
  { value: "system", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

const DENSITIES: readonly { readonly value: Prefs["density"]; readonly label: string }[] = [
  { value: "normal", label: "Normal" },
  { value: "compact", label: "Compact" },
];

/** Preferences, stored in this browser. */
export function PreferencesTab() {
  const { theme, density, singleKeys, mutedSignals } = prefs.value;
  return (
    <div class="card stack settings-form">
      <Field label="Theme">
        <Select
          value={theme}
          options={THEMES}
          onSelect={(value) => setPrefs({ theme: THEMES.find((each) => each.value === value)?.value ?? "system" })}
        />
      </Field>
      <ZoneField />
      <Field label="Rows">
        <Select
          value={density}
          options={DENSITIES}
          onSelect={(value) => setPrefs({ density: value === "compact" ? "compact" : "normal" })}
        />
      </Field>
      <div class="field">
        <Checkbox checked={singleKeys} onCheck={(checked) => setPrefs({ singleKeys: checked })}>
          Single-key shortcuts
        </Checkbox>
        <p class="field-help">
          Turn them off if you use speech input or press keys by accident. <kbd>Ctrl</kbd>+<kbd>K</kbd> always works.
        </p>
      </div>
      {mutedSignals.length > 0 && (
        <div class="field">
          <span class="field-label">Signals muted in the inbox</span>
          <div class="row">
            {mutedSignals.map((name) => (
              <Button
                key={name}
                local
                icon="cross"
                label={`Unmute ${name}`}
                onClick={() => setPrefs({ mutedSignals: mutedSignals.filter((each) => each !== name) })}
              >
                {name}
              </Button>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}

function ZoneField() {
  const zone = prefs.value.zone;
  const [text, setText] = useState(zone === "local" || zone === "utc" ? "" : zone);
  const choice = zone === "local" || zone === "utc" ? zone : "other";
  const [other, setOther] = useState(choice === "other");
  const wrong = other && text.trim() !== "" && !isZone(text.trim());
  const now = secondNow.value;
  return (
    <>
      <Field
        label="Time zone"
        help={
          <>
            It is now {formatTime(now, zone, "datetime")} ({toUtc(Math.floor(now / 1000) * 1000)}).
          </>
        }
      >
        <Select
          value={other ? "other" : choice}
          options={[
            { value: "local", label: `This browser (${Intl.DateTimeFormat().resolvedOptions().timeZone})` },
            { value: "utc", label: "UTC" },
            { value: "other", label: "Other" },
          ]}
          onSelect={(value) => {
            setOther(value === "other");
            if (value !== "other") setPrefs({ zone: value });
          }}
        />
      </Field>
      {other && (
        <Field label="Zone name" error={wrong ? "This browser does not know that zone." : null}>
          <TextInput
            value={text}
            mono
            placeholder="Europe/Berlin"
            onText={(value) => {
              setText(value);
              if (value.trim() !== "" && isZone(value.trim())) setPrefs({ zone: value.trim() });
            }}
          />
        </Field>
      )}
    </>
  );
}
