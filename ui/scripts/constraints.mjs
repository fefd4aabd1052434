// The constraints of the API's description on the bodies that the portal sends: the part of each schema that the
// browser can check in a form before sending it.
import { load } from 'js-yaml';

const kept = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'pattern', 'enum', 'format'];
const ofServer = new Set(['status', 'assignment']);
const untold = new Set(['int32', 'int64', 'double', 'float', 'date-time']); // the types ensure these

const named = (ref) => ref.slice(ref.lastIndexOf('/') + 1);

/** constrained returns a schema's own constraints, or undefined if it has none that a form can violate. */
function constrained(schema) {
  if (!schema) return undefined;
  if (schema.$ref) return { $ref: named(schema.$ref) };
  const out = {};
  for (const k of kept) if (k in schema && !(k === 'format' && untold.has(schema[k]))) out[k] = schema[k];
  if (schema.required) out.required = schema.required.filter((name) => name !== 'kind');
  const items = constrained(schema.items);
  if (items) out.items = items;
  const properties = Object.entries(schema.properties ?? {})
    .filter(([name]) => !ofServer.has(name))
    .map(([name, s]) => [name, constrained(s)])
    .filter(([, s]) => s);
  if (properties.length > 0) out.properties = Object.fromEntries(properties);
  return Object.keys(out).length > 0 ? out : undefined;
}

/** refs returns the names of the schemas that a schema refers to. */
const refs = (s) =>
  s && typeof s === 'object' ? [...(s.$ref ? [s.$ref] : []), ...Object.values(s).flatMap((v) => refs(v))] : [];

/** constraints returns those of every schema that is a request's JSON body, and of the schemas in them. */
export function constraints(text) {
  const { paths, components } = load(text);
  const bodies = Object.values(paths)
    .flatMap((path) => Object.values(path))
    .map((operation) => operation?.requestBody?.content?.['application/json']?.schema?.$ref)
    .filter(Boolean)
    .map(named);
  const out = {};
  for (const left = [...new Set(bodies)]; left.length > 0;) {
    const name = left.pop();
    if (name in out) continue;
    const schema = components.schemas[name];
    const own = constrained(schema) ?? {};
    // Names of objects have one format, except for kinds that define another.
    if (own.properties?.meta) own.name = schema['x-name-format'] ?? 'name';
    out[name] = own;
    left.push(...refs(own));
  }
  return Object.fromEntries(Object.entries(out).sort(([a], [b]) => a.localeCompare(b)));
}
