/** Backups of the embedded database, taken while it serves. The server chooses the place: no path comes from a request. */
import { resolve } from "node:path";
import { LodestoneError } from "../../errors.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import type { Services } from "./services.ts";

export function backupEndpoints({ records, backupDir }: Services): Endpoint[] {
  let isRunning = false;
  return [
    endpoint({
      method: "POST",
      path: "/backups",
      name: "createBackup",
      summary: "Copy the whole database, while it serves, into the server's folder for backups",
      tag: "Operation",
      access: "admin",
      responses: {
        201: {
          description: "The backup is whole and on disk: a data directory of its own.",
          schema: { type: "object", properties: { path: { type: "string" }, seconds: { type: "number" } }, required: ["path", "seconds"] },
        },
        422: { description: "Another backup is under way." },
      },
      async handle({ databases }) {
        if (databases !== undefined) throw new LodestoneError("FORBIDDEN", "A backup has all databases; this key is for some only.");
        if (backupDir === undefined) throw new LodestoneError("INVALID", "This server has no folder for backups.");
        if (isRunning) throw new LodestoneError("CONFLICT", "A backup is being taken already; wait for it.");
        const startedMs = performance.now();
        const path = resolve(backupDir, `backup-${new Date().toISOString().replace(/[:.]/g, "-")}`);
        isRunning = true;
        try {
          await records.backup(path);
        } finally {
          isRunning = false;
        }
        return { status: 201, body: { path, seconds: Math.round(performance.now() - startedMs) / 1000 } };
      },
    }),
  ];
}
