/** Checks on parts of a message: each returns the value with its type, or throws a `ProtocolError` that names the place. */

export class ProtocolError extends Error {}

export function has(data: object, name: string): boolean {
  return Object.hasOwn(data, name) && (data as Record<string, unknown>)[name] !== undefined;
}

export function asRecord(value: unknown, where: string): Record<string, unknown> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new ProtocolError(`${where} is ${show(value)}, expected an object`);
}

export function asList(value: unknown, where: string): unknown[] {
  if (Array.isArray(value)) return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected a list`);
}

export function asString(value: unknown, where: string): string {
  if (typeof value === "string") return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected text`);
}

export function asStrings(value: unknown, where: string): string[] {
  return asList(value, where).map((entry, i) => asString(entry, `${where}.${i}`));
}

export function asCount(value: unknown, where: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected a whole number`);
}

export function asIndices(value: unknown, where: string): number[] {
  return asList(value, where).map((entry, i) => asCount(entry, `${where}.${i}`));
}

export function asBoolean(value: unknown, where: string): boolean {
  if (typeof value === "boolean") return value;
  throw new ProtocolError(`${where} is ${show(value)}, expected true or false`);
}

export function asOneOf<T extends string>(known: readonly T[], value: unknown, where: string): T {
  const found = known.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ProtocolError(`${where} is ${show(value)}, expected one of ${known.join(", ")}`);
}

export function asNumberOrNull(value: unknown, where: string): number | null {
  if (value === null) return null;
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  throw new ProtocolError(`${where} is ${show(value)}, expected a number or null`);
}

export function show(value: unknown): string {
  return String(JSON.stringify(value) ?? typeof value).slice(0, 60);
}
