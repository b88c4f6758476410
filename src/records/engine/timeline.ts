/**
 * SQL for the timeline on which a primary writes (int4). It grows by one with every promotion. It is taken
 * from the name of the WAL file, which is right at once; pg_control_checkpoint() learns of a promotion only
 * at the next checkpoint.
 */
export const TIMELINE = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4`;
