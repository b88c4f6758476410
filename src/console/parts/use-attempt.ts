/** Work that the server may refuse: its words are shown until the next attempt. */
import { useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";

export interface Attempt {
  /** Why the last attempt failed; "" if it did not. */
  readonly fault: string;
  readonly attempt: (work: () => Promise<void>) => Promise<void>;
}

export function useAttempt(): Attempt {
  const [fault, setFault] = useState("");
  async function attempt(work: () => Promise<void>): Promise<void> {
    setFault("");
    try {
      await work();
    } catch (error) {
      setFault(messageOf(error));
    }
  }
  return { fault, attempt };
}
