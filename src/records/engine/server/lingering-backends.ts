/**
 * Back ends that still run a users' statement although they were told to end: PostgreSQL looks at an
 * interruption between rows and pages, not inside one long expression. Until such a back end is gone it uses a
 * processor and a connection of the database.
 */
import type { Connection } from "../engine.ts";

const LOOK_EVERY_MS = 500;

/** Identifies a back end: a number alone may be given to another one later. */
export interface BackEnd {
  readonly processId: number;
  readonly roleName: string;
}

/**
 * Resolves once the back end has ended. Looks again and again, also after an error: while the database cannot
 * be reached nothing is known about it.
 *
 * @param isOver  true when nobody needs to know any more (the engine was closed).
 */
export async function untilEnded(owner: Connection, { processId, roleName }: BackEnd, isOver: () => boolean): Promise<void> {
  for (;;) {
    if (isOver()) return;
    const isGone = await owner
      .query<{ n: number }>("SELECT 1 AS n FROM pg_stat_activity WHERE pid = $1 AND usename = $2", [processId, roleName])
      .then(({ rows }) => rows.length === 0)
      .catch(() => false);
    if (isGone) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS).unref());
  }
}
