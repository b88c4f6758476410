export function sourceStamp(root: string): string;
export function stampFile(root: string): string;
export function isBuilt(root: string): boolean;
