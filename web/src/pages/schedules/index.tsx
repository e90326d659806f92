export { SchedulePage } from "./schedule";
export { SchedulesPage } from "./schedules";
