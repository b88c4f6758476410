/** What is read again and again while somebody can see it. */
import { useEffect, useRef } from "preact/hooks";
import { connection } from "./page-session.ts";

/**
 * Does it at once, then in this interval, and when the page or the server is back; nothing while the page is hidden.
 * @param isFresh  what is shown has just been read.
 */
export function useInView(everyMs: number, work: () => void, isFresh = false): void {
  const mayWait = useRef(isFresh);
  useEffect(() => {
    const read = (): void => {
      if (!document.hidden) work();
    };
    if (!mayWait.current) read();
    mayWait.current = false;
    const timer = setInterval(read, everyMs);
    document.addEventListener("visibilitychange", read);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", read);
    };
  }, [connection.value]);
}
