/** The navigation: names, paths, and the letter after `g`. */
export interface Section {
  readonly id: string;
  readonly label: string;
  readonly path: string;
  readonly key: string;
}

export const SECTIONS: readonly Section[] = [
  { id: "runs", label: "Runs", path: "/runs", key: "r" },
  { id: "workflows", label: "Workflows", path: "/workflows", key: "w" },
  { id: "schedules", label: "Schedules", path: "/schedules", key: "s" },
  { id: "workers", label: "Workers", path: "/workers", key: "k" },
  { id: "inbox", label: "Inbox", path: "/inbox", key: "i" },
  { id: "operations", label: "Operations", path: "/operations", key: "o" },
  { id: "settings", label: "Settings", path: "/settings", key: "," },
];
