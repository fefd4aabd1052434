// A form that creates or changes an object, and handles concurrent changes by others: at once if the watch reports
// them, else on saving. No input is lost, and fields that the user has not changed are not overwritten.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { changedMeanwhile, type Resource } from '../api/resource';
import { asCurl, changeAsCurl } from '../lib/shell';
import { merge, same, sameAt, valueAt, withValue, type At, type Taken } from '../lib/merge';

interface Options<T, F> {
  of: Resource<T>;
  /** The object to edit; undefined creates one. */
  object: T | undefined;
  /** Returns the form's fields for an object, or for a new one. */
  fields: (object: T | undefined) => F;
  /** Returns what is sent: the form applied to the newest known object, with its revision. */
  body: (object: T | undefined, form: F) => T;
  onSaved?: (saved: T) => void;
  /** What the command of the form shows instead of secrets, by their paths in the body. */
  secrets?: Record<string, string>;
}

interface State<T, F> {
  object: T | undefined;
  was: F;
  form: F;
  taken: Taken<F>[];
  clashes: At<F>[];
}

/** Change is one of the other users' changes, for display. */
export interface Change<F> extends At<F> {
  before?: unknown;
  theirs: unknown;
  mine: unknown;
}

export interface Edit<F> {
  form: F;
  set: <K extends keyof F>(field: K) => (value: F[K]) => void;
  /** Resets the form to what was last read or saved. */
  reset: () => void;
  edited: boolean;
  submit: () => void;
  busy: boolean;
  saved: boolean;
  error: unknown;
  /** dismiss removes the error, as its cause has changed. */
  dismiss: () => void;
  /** Changes of others only, which the form contains. */
  taken: Change<F>[];
  /** Changes of both; the form has the user's until it is decided. */
  clashes: Change<F>[];
  keep: (at: At<F>) => void;
  take: (at: At<F>) => void;
  seen: () => void;
  /** How often a save has met others' changes. */
  met: number;
  gone: boolean;
}

/** Met reports that a save met changes that the user has to look at first. */
class Met extends Error {}

const mostTries = 5; // for objects that change by themselves: agents report every few seconds

/** rebased applies a form to a newer object; undecided changes stay undecided. */
function rebased<T, F extends object>(s: State<T, F>, newest: T, fields: (o: T) => F): State<T, F> {
  const { was, form, taken, clashes } = merge(s.was, s.form, fields(newest));
  const others = <A extends At<F>>(old: A[], now: At<F>[]) => old.filter((c) => !now.some((x) => sameAt(x, c)));
  const open = others(s.clashes, clashes).filter((c) => !same(valueAt(was, c), valueAt(form, c)));
  return { object: newest, was, form, taken: [...others(s.taken, taken), ...taken], clashes: [...open, ...clashes] };
}

/** hide replaces the value at a path, if there is one. */
function hide<T>(of: T, [first = '', ...rest]: string[], text: string): T {
  const value = (of as Record<string, unknown> | undefined)?.[first];
  return value ? { ...of, [first]: rest.length > 0 ? hide(value, rest, text) : text } : of;
}

export function useEdit<T, F extends object>({
  of,
  object,
  fields,
  body,
  onSaved,
  secrets = {},
}: Options<T, F>): Edit<F> & { body: T; curl: string } {
  const client = useQueryClient();
  const fresh = (o: T | undefined): State<T, F> => {
    const form = fields(o);
    return { object: o, was: form, form, taken: [], clashes: [] };
  };
  const [state, setState] = useState(() => fresh(object));
  const [met, setMet] = useState(0);
  const id = object && of.id(object);
  const newest = useQuery({
    queryKey: id === undefined ? ['new'] : of.key(id),
    enabled: id !== undefined,
    queryFn: () => of.get(id ?? ''),
  }).data;
  const send = useMutation({
    mutationFn: async () => {
      if (state.clashes.length > 0) throw new Met();
      if (!state.object || id === undefined) return of.post(body(undefined, state.form));
      let s = state;
      for (let tries = 1; ; tries++) {
        const now = s.object as T;
        try {
          return await of.patch(id, now, body(now, s.form));
        } catch (e) {
          if (!changedMeanwhile(e) || tries === mostTries) throw e;
          const theirs = await of.get(id);
          client.setQueryData(of.key(id), theirs);
          if (!theirs) throw new Met();
          if (of.revision(theirs) === of.revision(now)) throw e; // another kind of conflict
          s = rebased({ ...s, taken: [] }, theirs, fields);
          setState((x) => rebased(x, theirs, fields)); // includes what was typed since
          if (s.taken.length + s.clashes.length > 0) throw new Met();
        }
      }
    },
    onError: (e) => void (e instanceof Met && setMet((n) => n + 1)),
    onSuccess: (saved) => {
      if (id !== undefined) {
        client.setQueryData(of.key(id), saved);
        setState(fresh(saved));
      }
      void client.invalidateQueries({ queryKey: of.lists });
      onSaved?.(saved);
    },
  });
  // The watch also reports the user's own save, possibly before the response arrives.
  if (newest && state.object && !send.isPending && of.revision(newest) > of.revision(state.object))
    setState(rebased(state, newest, fields));
  const edited = !same(state.form, state.was);
  const change = (at: At<F>): Change<F> => ({ ...at, theirs: valueAt(state.was, at), mine: valueAt(state.form, at) });
  const settle = (at: At<F>, form: (s: State<T, F>) => F) =>
    setState((s) => ({ ...s, form: form(s), clashes: s.clashes.filter((c) => !sameAt(c, at)) }));
  const sent = body(state.object, state.form);
  const shown = Object.entries(secrets).reduce((o, [path, text]) => hide(o, path.split('.'), text), sent);
  return {
    form: state.form,
    set: (field) => (value) => setState((s) => ({ ...s, form: { ...s.form, [field]: value } })),
    reset: () => (send.reset(), setState((s) => ({ ...s, form: s.was, clashes: [] }))),
    edited,
    submit: () => send.mutate(),
    busy: send.isPending,
    saved: send.isSuccess && !edited,
    error: send.error instanceof Met ? null : send.error,
    dismiss: send.reset,
    taken: state.taken.map((x) => ({ ...change(x), before: x.before })),
    clashes: state.clashes.map(change),
    keep: (at) => settle(at, (s) => s.form),
    take: (at) => settle(at, (s) => withValue(s.form, at, valueAt(s.was, at))),
    seen: () => setState((s) => ({ ...s, taken: [] })),
    met,
    gone: newest === null,
    body: sent,
    curl:
      id === undefined || !state.object ? asCurl('POST', of.path(id), shown) : changeAsCurl(of, state.object, shown),
  };
}
