/**
 * Backups of the embedded database, made without stopping it. The server chooses the folder: no path comes from a
 * request.
 */
import { readdir } from "node:fs/promises";
import { resolve } from "node:path";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import { MAX_LISTED } from "../http-limits.ts";
import { objectOf } from "../schemas.ts";
import { ClientGoneError } from "../status.ts";
import type { Services } from "./services.ts";

export function backupEndpoints({ records, backupDir }: Services): Endpoint[] {
  let isRunning = false;
  return [
    endpoint({
      method: "GET",
      path: "/backups",
      name: "listBackups",
      summary: "The backups in the server's folder for them, newest first",
      tag: "Operation",
      access: "admin",
      responses: {
        200: {
          description: `The newest ${MAX_LISTED}, each complete.`,
          schema: {
            type: "object",
            properties: {
              backups: {
                type: "array",
                items: {
                  type: "object",
                  properties: { name: { type: "string" }, createdAt: { type: "string", format: "date-time" } },
                  required: ["name", "createdAt"],
                },
              },
              isRunning: { type: "boolean", description: "Whether a backup is being made." },
            },
            required: ["backups", "isRunning"],
          },
        },
      },
      async handle({ databases }) {
        if (databases !== undefined)
          throw new LodestoneError("FORBIDDEN", "A backup contains all databases; this key is limited to some of them.");
        const backups = backupDir === undefined ? [] : await listBackups(backupDir);
        return { status: 200, body: { backups, isRunning } };
      },
    }),
    endpoint({
      method: "POST",
      path: "/backups",
      body: { required: false, schema: objectOf({}) },
      name: "createBackup",
      summary: "Back up the whole database, without stopping it, into the server's folder for backups",
      tag: "Operation",
      access: "admin",
      responses: {
        201: {
          description: "The backup is complete and on disk. It is a data directory of its own.",
          schema: { type: "object", properties: { path: { type: "string" }, seconds: { type: "number" } }, required: ["path", "seconds"] },
        },
        422: { description: "Another backup is in progress." },
      },
      async handle({ databases, signal }) {
        if (databases !== undefined)
          throw new LodestoneError("FORBIDDEN", "A backup contains all databases; this key is limited to some of them.");
        if (backupDir === undefined) throw new LodestoneError("INVALID", "This server has no folder for backups.");
        if (isRunning) throw new LodestoneError("CONFLICT", "A backup is already in progress; wait for it to finish.");
        const startedMs = performance.now();
        const path = resolve(backupDir, nameOf(new Date()));
        // A client that does not wait for its end may still want it.
        const ended = new AbortController();
        const end = (): void => void (signal.reason instanceof ClientGoneError || ended.abort(signal.reason));
        signal.addEventListener("abort", end, { once: true });
        if (signal.aborted) end();
        isRunning = true;
        try {
          await records.backup(path, ended.signal);
        } finally {
          isRunning = false;
          signal.removeEventListener("abort", end);
        }
        return { status: 201, body: { path, seconds: Math.round(performance.now() - startedMs) / 1000 } };
      },
    }),
  ];
}

/** "backup-2026-11-22T04-50-10-123Z". An incomplete one has another ending. */
const nameOf = (time: Date): string => `backup-${time.toISOString().replace(/[:.]/g, "-")}`;

const BACKUP_NAME = /^backup-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z$/;

async function listBackups(folder: string): Promise<{ name: string; createdAt: string }[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    // It is created with the first backup.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  const found = names.flatMap((name) => {
    const [, day, hour, minute, second, ms] = BACKUP_NAME.exec(name) ?? [];
    return day === undefined ? [] : [{ name, createdAt: `${day}T${hour}:${minute}:${second}.${ms}Z` }];
  });
  return found.sort((a, b) => (a.name < b.name ? 1 : -1)).slice(0, MAX_LISTED);
}
