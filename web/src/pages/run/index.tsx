export { ComparePage } from "./compare";
export { RunPage } from "./page";
