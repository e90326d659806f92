export { StartPage } from "./start";
export { WorkflowPage } from "./workflow";
export { WorkflowsPage } from "./workflows";
