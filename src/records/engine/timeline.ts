/**
 * SQL for the timeline on which a primary writes (int4): it grows by one with every promotion. By the name of
 * the log's file, which is right at once; pg_control_checkpoint() knows of a promotion only after the
 * checkpoint that follows it.
 */
export const TIMELINE = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4`;
