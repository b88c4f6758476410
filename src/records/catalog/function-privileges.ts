/**
 * Part of the second wall of SQL over HTTP. Some of PostgreSQL's own functions reach beyond a branch, and
 * everybody may call them by default. They are revoked from PUBLIC in this database, so the role of a branch
 * cannot call them, whatever the first wall lets through. PostgreSQL cannot revoke from one role what all roles
 * have.
 *
 * On a server this takes a superuser. Without one nothing is changed, and only the first wall guards these
 * functions (docs/reliability.md says what to do).
 */
import type { Connection } from "../engine/engine.ts";

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

const REACHING_BEYOND = words(`
  lo_close lo_creat lo_create lo_export lo_from_bytea lo_get lo_import lo_lseek lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate lo_truncate64
  lo_unlink loread lowrite
  pg_logical_emit_message pg_create_logical_replication_slot pg_create_physical_replication_slot pg_copy_logical_replication_slot
  pg_copy_physical_replication_slot pg_drop_replication_slot pg_replication_slot_advance pg_sync_replication_slots pg_logical_slot_get_changes
  pg_logical_slot_get_binary_changes pg_logical_slot_peek_changes pg_logical_slot_peek_binary_changes
  set_config setseed pg_notify pg_export_snapshot pg_sleep pg_sleep_for pg_sleep_until pg_cancel_backend pg_terminate_backend
  pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock
  pg_advisory_xact_lock_shared pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared
  query_to_xml query_to_xmlschema query_to_xml_and_xmlschema cursor_to_xml cursor_to_xmlschema table_to_xml table_to_xmlschema
  table_to_xml_and_xmlschema schema_to_xml schema_to_xmlschema schema_to_xml_and_xmlschema database_to_xml database_to_xmlschema
  database_to_xml_and_xmlschema ts_stat ts_rewrite
  pg_stat_clear_snapshot pg_stat_force_next_flush pg_isolation_test_session_is_blocked
  pg_read_file_old pg_rotate_logfile_old pg_import_system_collations pg_nextoid pg_stop_making_pinned_objects pg_extension_config_dump
  pg_restore_attribute_stats pg_restore_relation_stats pg_clear_attribute_stats pg_clear_relation_stats
  brin_summarize_new_values brin_summarize_range brin_desummarize_range gin_clean_pending_list`);

/** Those of REACHING_BEYOND that everybody may still call: PostgreSQL versions differ in which exist. */
const STILL_PUBLIC = `SELECT format('pg_catalog.%I(%s)', proname, pg_get_function_identity_arguments(oid)) AS signature
  FROM pg_catalog.pg_proc
  WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f' AND proname = ANY ($1::name[]) AND has_function_privilege('public', oid, 'EXECUTE')
    AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)`;

/**
 * Runs at every start, so that a database of an older release, a restored one, or a newer PostgreSQL is brought
 * up to date.
 */
export async function confineFunctions(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ signature: string }>(STILL_PUBLIC, [REACHING_BEYOND]);
  if (rows.length === 0) return;
  const functions = rows.map(({ signature }) => signature).join(", ");
  await connection.query(`REVOKE EXECUTE ON FUNCTION ${functions} FROM PUBLIC`);
  // Our own user, where a superuser happens to do this for it.
  const owner = await connection.query<{ name: string }>(
    "SELECT quote_ident(pg_get_userbyid(nspowner)) AS name FROM pg_catalog.pg_namespace WHERE nspname = 'lodestone'",
  );
  await connection.query(`GRANT EXECUTE ON FUNCTION ${functions} TO ${owner.rows[0]!.name}`);
}
