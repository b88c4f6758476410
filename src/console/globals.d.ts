/** The worker's file, relative to the page; set by the build. */
declare const MAP_WORKER_FILE: string;

declare module "*.css";

/** In Chromium, on pages that are secure or local: GiB, rounded. */
interface Navigator {
  readonly deviceMemory?: number;
}
