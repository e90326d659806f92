// A component that is rendered again only when a property changes.
import { Component, type ComponentChildren, type FunctionComponent } from "preact";
import { createElement } from "preact";

export function memo<P extends object>(render: FunctionComponent<P>): FunctionComponent<P> {
  class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const was = this.props as Record<string, unknown>;
      const is = next as Record<string, unknown>;
      return Object.keys(is).some((name) => was[name] !== is[name]);
    }

    override render(): ComponentChildren {
      return createElement(render, this.props as P & { children?: ComponentChildren });
    }
  }
  return Memo as unknown as FunctionComponent<P>;
}
