export { WorkerPage } from "./worker";
export { WorkersPage } from "./workers";
