/** Files that the page makes and the browser saves, and the cells of those that are CSV. */

/** By then the browser has taken the file. */
const FORGET_MS = 60_000;

export function saveFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), FORGET_MS);
}

/** RFC 4180. */
export const csvCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/**
 * For programs that take a cell for a formula when it begins with =, +, -, @, a tab or a carriage return (OWASP,
 * "CSV Injection"): such texts get an apostrophe before them, which shows that they are texts.
 */
export const spreadsheetCell = (text: string): string => csvCell(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
