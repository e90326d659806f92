/** Pages that a first visit does not need. They are loaded on the first user interaction. */

export { InboxPage } from "./pages/inbox";
export { OperationPage, OperationsPage } from "./pages/operations";
export { ComparePage, RunPage } from "./pages/run";
export { SchedulePage, SchedulesPage } from "./pages/schedules";
export { SettingsPage } from "./pages/settings";
export { WorkerPage, WorkersPage } from "./pages/workers";
export { StartPage, WorkflowPage, WorkflowsPage } from "./pages/workflows";
