/** The worker's file, relative to the page; the build puts its name here. */
declare const MAP_WORKER_FILE: string;

declare module "*.css";
