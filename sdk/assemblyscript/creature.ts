export * from "./assembly/creature";
