/**
 * The queue of searches on their way to the engine. A few are sent ahead. The rest waits here, where they can
 * still be cancelled, and callers are served fairly by the time that their searches take. Beyond a limit,
 * which callers also share, a search is refused at once: that is better for everyone than an answer that
 * comes too late.
 */
import { FairTurns } from "../fairness/fair-turns.ts";

/** One in progress, and one ready when it has finished. */
const DEFAULT_SENT_AHEAD = 2;
const DEFAULT_MAX_WAITING = 512;

/** @param sentAhead  how many searches the engine is given at once. */
export function searchQueue(maxWaiting = DEFAULT_MAX_WAITING, sentAhead = DEFAULT_SENT_AHEAD): FairTurns {
  return new FairTurns({
    places: sentAhead,
    allToOne: true,
    mostWaiting: maxWaiting,
    busy: (waiting, seconds) => `${waiting} searches are waiting already; try again in ${seconds} s.`,
  });
}
