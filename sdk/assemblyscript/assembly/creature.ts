import { runHandle, runInit, runStop } from "./register";

/** Declares the version of the contract. */
export function terrarium_abi_v1(): void {}

export function creature_init(): i32 {
  return runInit();
}

export function creature_handle(kind: i32, size: i32): i32 {
  return runHandle(kind, size);
}

export function creature_stop(): void {
  runStop();
}
