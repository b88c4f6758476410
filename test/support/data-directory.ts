/**
 * Where tests keep a pristine database: each new data directory is a copy of it instead of an initdb of its
 * own.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";

export const TEMPLATE_DIR = join(tmpdir(), "lodestone-test-template");
