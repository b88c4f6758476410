/** Sizes in words. */
const KB = 1024;
const MB = 1024 * KB;
const GB = 1024 * MB;

/** "3 kB", "1.5 MB", "192 MB", "2.3 GB". */
export function sizeInWords(bytes: number): string {
  if (bytes === 0) return "0 MB";
  if (bytes >= GB) return `${(bytes / GB).toFixed(1)} GB`;
  if (bytes >= MB) return `${(bytes / MB).toFixed(bytes < 10 * MB ? 1 : 0)} MB`;
  return `${Math.ceil(bytes / KB)} kB`;
}
