export { Sparkline } from "./bars";
