// Checks a body against the constraints of the API's description before it is sent.
import constraints from '../api/constraints.json';
import type { Translation } from '../i18n';
import { decimal } from './amount';
import { formatBytes } from './format';
import { formats, type Format } from './formats';

export type SchemaName = keyof typeof constraints;

/** Problem is an error at a path of the body, as the server names them too. */
export interface Problem {
  path: string;
  text: string;
}

interface Constraint {
  $ref?: string;
  required?: string[];
  properties?: Record<string, Constraint>;
  items?: Constraint;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
  enum?: string[];
  /** The format of an object's name. */
  name?: string;
}

const schemas: Record<string, Constraint> = constraints;

export const isEmpty = (v: unknown) => v === undefined || v === null || v === '';

/** bound formats a limit like the value that it limits: sizes have units, amounts a decimal point. */
function bound(path: string, n: number, language: string): string {
  if (/Bytes$/.test(path)) return formatBytes(n, language);
  return /Micros$/.test(path) ? decimal(n) : new Intl.NumberFormat(language).format(n);
}

/** range describes the allowed range of a number or a length. */
function range(text: Translation, stem: 'value' | 'length' | 'items', say: (n: number) => string, at: number[]) {
  const [least, most] = at as [number | undefined, number | undefined];
  if (least !== undefined && most !== undefined)
    return text.t(`form.${stem}.between`, { least: say(least), most: say(most) });
  return least === undefined
    ? text.t(`form.${stem}.most`, { most: say(most ?? 0) })
    : text.t(`form.${stem}.least`, { least: say(least) });
}

/** fault returns the text of the first constraint that a single value violates. */
function fault(c: Constraint, path: string, value: unknown, text: Translation): string | undefined {
  const out = (n: number, least = -Infinity, most = Infinity) => n < least || n > most;
  const number = (n: number) => bound(path, n, text.language);
  const limits = (least?: number, most?: number) => [least, most] as number[];
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return text.t(/Micros$/.test(path) ? 'cust.amountWrong' : 'form.number');
    if (out(value, c.minimum, c.maximum)) return range(text, 'value', number, limits(c.minimum, c.maximum));
  }
  if (Array.isArray(value) && out(value.length, c.minItems, c.maxItems))
    return range(text, 'items', number, limits(c.minItems, c.maxItems));
  if (typeof value !== 'string') return undefined;
  if (out([...value].length, c.minLength, c.maxLength))
    return range(text, 'length', number, limits(c.minLength, c.maxLength));
  if (c.enum && !c.enum.includes(value)) return text.t('form.enum');
  if (c.format && c.format in formats && !formats[c.format as Format](value))
    return text.t(`form.format.${c.format as Format}`);
  if (c.pattern && !new RegExp(c.pattern, 'u').test(value)) {
    const key = `form.pattern.${c.pattern}`;
    return text.t(text.has(key) ? key : 'form.pattern');
  }
  return undefined;
}

/** problems returns all problems of a body, in the order of the description. An empty text counts as not given. */
export function problems(schema: SchemaName, body: unknown, text: Translation): Problem[] {
  const found: Problem[] = [];
  const visit = (given: Constraint, path: string, value: unknown) => {
    const c = given.$ref ? (schemas[given.$ref] ?? {}) : given;
    if (isEmpty(value)) return;
    const wrong = fault(c, path, value, text);
    if (wrong) found.push({ path, text: wrong });
    if (Array.isArray(value)) return value.forEach((v, n) => c.items && visit(c.items, `${path}[${n}]`, v));
    if (typeof value !== 'object') return;
    const of = value as Record<string, unknown>;
    const at = (name: string) => (path ? `${path}.${name}` : name);
    for (const name of c.required ?? [])
      if (isEmpty(of[name])) found.push({ path: at(name), text: text.t('form.required') });
    for (const [name, s] of Object.entries(c.properties ?? {}))
      // The server treats a 0 of an optional field as not given.
      if (of[name] !== 0 || c.required?.includes(name)) visit(s, at(name), of[name]);
    const meta = of.meta as { name?: string } | undefined;
    if (c.name && meta?.name) visit({ format: c.name }, 'meta.name', meta.name);
  };
  visit(schemas[schema] ?? {}, '', body);
  return found;
}

/** covers reports whether a problem at path belongs to a field: to the same path, or one above it. */
const covers = (field: string, path: string) =>
  field === path || path.startsWith(`${field}.`) || path.startsWith(`${field}[`);

/** owner returns the field that is nearest to a path; undefined if no field shows it. */
export const owner = (fields: readonly string[], path: string): string | undefined =>
  fields.filter((f) => covers(f, path)).sort((a, b) => b.length - a.length)[0];

/** valueAt returns the value at a path of a body, such as spec.rules[0].cidr. */
export const valueAt = (body: unknown, path: string): unknown =>
  path
    .split(/[.[\]]+/)
    .filter(Boolean)
    .reduce<unknown>((v, key) => (v as Record<string, unknown> | null | undefined)?.[key], body);
