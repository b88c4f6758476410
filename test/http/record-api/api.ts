/** Shared by the tests of the record API: calls of the server under test, and the form of responses. */
import { expect } from "vitest";
import type { ServerClient } from "../../support/server-client.ts";

export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
export const NEW_METADATA = { version: 0, createdAt: expect.stringMatching(TIMESTAMP), updatedAt: expect.stringMatching(TIMESTAMP) };
export const REQUEST_ID = expect.stringMatching(/^[\w-]{8,}$/);

/** @param server  asked for each call, because it is started after the tests are described. */
export const apiOf = (server: () => ServerClient) => ({
  get: (path: string) => server().get(path),
  post: (path: string, body: unknown) => server().post(path, body),
  put: (path: string, body?: unknown) => server().put(path, body),
  patch: (path: string, body: unknown) => server().patch(path, body),
  delete: (path: string) => server().delete(path),
});

export type Api = ReturnType<typeof apiOf>;
