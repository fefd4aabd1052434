// The changes of an object as a JSON merge patch (RFC 7396): a form sends only these, and keeps everything else as
// others have changed it.

type Json = Record<string, unknown>;

const isObject = (v: unknown): v is Json => typeof v === 'object' && v !== null && !Array.isArray(v);
const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** mergePatch returns the patch from was to now: removed members are null, lists are sent whole. */
export function mergePatch(was: Json, now: Json): Json {
  const patch: Json = {};
  for (const key of new Set([...Object.keys(was), ...Object.keys(now)])) {
    const [a, b] = [was[key], now[key]];
    if (b === undefined) {
      if (a !== undefined) patch[key] = null;
    } else if (isObject(a) && isObject(b)) {
      const inner = mergePatch(a, b);
      if (Object.keys(inner).length > 0) patch[key] = inner;
    } else if (!same(a, b)) patch[key] = b;
  }
  return patch;
}

/** settingsPatch returns the patch of what a form sends of settings: members that the form does not have are kept. The
 * revision is sent in If-Match. */
export function settingsPatch(was: object, now: object): Json {
  const of = (s: Json) =>
    Object.fromEntries(Object.keys(now).flatMap((k) => (k === 'revision' ? [] : [[k, s[k]] as const])));
  return mergePatch(of(was as Json), of(now as Json));
}

interface Thing {
  meta: { name?: string; labels?: unknown };
  spec: unknown;
}

/** patchOf returns the patch of what users write of an object: name, labels and spec. */
export function patchOf(was: Thing, now: Thing): Json {
  const said = ({ meta, spec }: Thing): Json => ({
    meta: { name: meta.name, ...(meta.labels !== undefined && { labels: meta.labels }) },
    spec,
  });
  // A body without a name or labels keeps them.
  return mergePatch(said(was), said({ ...now, meta: { ...was.meta, ...now.meta } }));
}
