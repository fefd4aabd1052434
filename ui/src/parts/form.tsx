// A form that is checked before it is sent: by the constraints of the API's
// description, by the browser, and by the form's own rules. What is wrong stands
// at the fields, all of it at once, and what the server says stands there too.
import { Alert, Button, Form as PFForm } from '@patternfly/react-core';
import { createContext, use, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useForm, type FieldErrors } from 'react-hook-form';
import { asApiError } from '../api/client';
import { useText } from '../i18n';
import { isEmpty, owner, problems, valueAt, type Problem, type SchemaName } from '../lib/problems';
import { ErrorAlert } from './error';
import { useGuard } from './guard';

interface Shown {
  /** Where the field's value is in the body; undefined: it is not sent as it is. */
  path?: string;
  label: string;
  required?: boolean;
}

interface Wrong {
  label: string;
  text: string;
}

interface Context {
  errors: Partial<Record<string, Wrong>>;
  register: (id: string, field: Shown) => () => void;
}

const Fields = createContext<Context>({ errors: {}, register: () => () => undefined });

/** useField is what is wrong with a field of the form that it is in. */
export function useField(id: string, { path, label, required }: Shown): string | undefined {
  const { errors, register } = use(Fields);
  useEffect(() => register(id, { path, label, required }), [register, id, path, label, required]);
  return errors[id]?.text;
}

/** useWrong is the same, for the inputs of a field of several. */
export const useWrong = (id: string) => use(Fields).errors[id]?.text;

export interface Checked {
  /** The schema of the body; without one, only the fields' own rules are checked. */
  schema?: SchemaName;
  body?: unknown;
  /** What the form's own rules find, across its fields too. */
  wrong?: Problem[];
  busy: boolean;
  error: unknown;
  /** What a dry run says while one types: it stands at the fields without taking the focus. */
  live?: unknown;
  onSubmit: () => void;
}

interface Props extends Checked {
  id?: string;
  label?: string;
  className?: string;
  /** It is long: who leaves it with changes is asked. */
  long?: boolean;
  children: ReactNode;
}

interface Served extends Problem {
  /** What the server said it of: it stands until this is changed. */
  value: string | undefined;
}

const serverProblems = (error: unknown): Problem[] =>
  error
    ? asApiError(error).fields.map((f) => ({
        path: f.field,
        text: f.hint ? `${f.detail}: ${f.hint}` : f.detail,
      }))
    : [];

/** invalid is what the browser itself knows of an input: it is empty, or holds no number. */
function invalid(id: string): 'form.required' | 'form.number' | undefined {
  const { validity } = (document.getElementById(id) ?? {}) as { validity?: ValidityState };
  return validity?.badInput ? 'form.number' : validity?.valueMissing ? 'form.required' : undefined;
}

/** useChecks has the errors of a form's fields, by their ids. */
function useChecks({ schema, body, wrong = [], busy, error, live, onSubmit }: Checked) {
  const text = useText();
  const fields = useRef(new Map<string, Shown>());
  const served = useRef<Record<'error' | 'live', Served[]>>({ error: [], live: [] });
  const last = useRef<string[]>([]);
  const narrowing = useRef(false);
  const submitting = useRef(false);
  const [attempt, setAttempt] = useState(0);
  const [loose, setLoose] = useState<Partial<Record<'error' | 'live', unknown>>>({});

  const place = (path: string) => {
    const paths = new Map([...fields.current].flatMap(([id, f]) => (f.path === undefined ? [] : [[f.path, id]])));
    const found = owner([...paths.keys()], path);
    return found === undefined ? undefined : paths.get(found);
  };
  const check = () => {
    const out = new Map<string, string>();
    const add = (id: string | undefined, said: string) => id !== undefined && !out.has(id) && out.set(id, said);
    for (const [id, { path, required }] of fields.current) {
      const key = invalid(id) ?? (required && path && isEmpty(valueAt(body, path)) ? 'form.required' : undefined);
      if (key) add(id, text.t(key));
    }
    for (const p of wrong) add(place(p.path), p.text);
    // What no field shows, nobody here can correct: the server says what it thinks of it.
    for (const p of schema ? problems(schema, body, text) : []) add(place(p.path), p.text);
    for (const p of [...served.current.error, ...served.current.live])
      if (JSON.stringify(valueAt(body, p.path)) === p.value) add(place(p.path), p.text);
    return new Map([...fields.current.keys()].flatMap((id) => (out.has(id) ? [[id, out.get(id) ?? '']] : [])));
  };
  const { trigger, handleSubmit, formState } = useForm<Record<string, unknown>>({
    shouldFocusError: false, // PatternFly's inputs are not registered: focus goes by the document
    resolver: () => {
      const now = served.current.live.map((p) => place(p.path));
      const found = [...check()].filter(([id]) => !narrowing.current || last.current.includes(id) || now.includes(id));
      last.current = found.map(([id]) => id);
      const error = ([id, message]: [string, string]) => [id, { type: fields.current.get(id)?.label ?? id, message }];
      return { values: {}, errors: Object.fromEntries(found.map(error)) as FieldErrors };
    },
  });

  /** serve puts what the server said where it belongs; loose is what belongs nowhere. */
  const serve = (of: 'error' | 'live', said: unknown) => {
    const given = serverProblems(said);
    served.current[of] = given.map((p) => ({ ...p, value: JSON.stringify(valueAt(body, p.path)) }));
    narrowing.current = of === 'live';
    const placed = given.length > 0 && given.every((p) => place(p.path) !== undefined);
    void trigger().then(() => {
      narrowing.current = false;
      setLoose((old) => ({ ...old, [of]: placed ? null : said }));
      if (of === 'error') setAttempt((n) => n + 1);
    });
  };
  // They are of the body that was sent, not of later ones.
  /* eslint-disable react-hooks/exhaustive-deps */
  useEffect(() => {
    if (error) serve('error', error);
  }, [error]);
  useEffect(() => {
    if (live || served.current.live.length > 0) serve('live', live);
  }, [live]);
  /* eslint-enable react-hooks/exhaustive-deps */

  // What is corrected goes at once; what is newly wrong comes when the field is left.
  const state = JSON.stringify([body, wrong]);
  const errors = flat(formState.errors);
  useEffect(() => {
    if (last.current.length === 0) return;
    narrowing.current = true;
    void trigger().finally(() => (narrowing.current = false));
  }, [state, trigger]);

  const submit = async () => {
    if (busy || submitting.current) return;
    submitting.current = true;
    served.current = { error: [], live: [] };
    setLoose({});
    // Until a mutation says that it is busy, nothing else is sent.
    await handleSubmit(() => (onSubmit(), new Promise((done) => setTimeout(done))))();
    submitting.current = false;
    setAttempt((n) => n + 1);
  };
  const register = useMemo(
    () => (id: string, field: Shown) => {
      fields.current.set(id, field);
      return () => void fields.current.delete(id);
    },
    [],
  );
  return {
    errors,
    attempt,
    /** What the server said that no field shows. */
    loose: (loose.error === error && error) || (loose.live === live && live) || null,
    context: useMemo(() => ({ errors, register }), [errors, register]),
    submit,
    left: () => formState.isSubmitted && void trigger(),
  };
}

/** flat are the form's errors by the ids of its fields; an error's type is its field's label. */
const flat = (errors: FieldErrors): Context['errors'] =>
  Object.fromEntries(
    Object.entries(errors).map(([id, e]) => [id, { label: e?.type as string, text: e?.message as string }]),
  );

export function Form({ id, label, className, long, children, ...checked }: Props) {
  const { count } = useText();
  const box = useRef<HTMLFormElement>(null);
  const { errors, attempt, loose, context, submit, left } = useChecks(checked);
  const [touched, setTouched] = useState(false);
  useGuard(Boolean(long) && touched && !checked.busy);
  const wrong = Object.entries(errors);
  useEffect(() => {
    if (attempt > 0) box.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [attempt]);
  return (
    <PFForm
      id={id}
      ref={box}
      noValidate
      aria-label={label}
      className={className}
      onChange={() => setTouched(true)}
      onBlur={left}
      onSubmit={(e) => {
        e.preventDefault();
        setTouched(false);
        void submit();
      }}
    >
      <ErrorAlert error={loose} />
      <div role="alert" className={wrong.length > 1 ? undefined : 'pf-v6-screen-reader'}>
        {wrong.length > 0 && (
          <Alert variant="danger" isInline component="p" title={count('form.wrong', wrong.length)}>
            <ul>
              {wrong.map(([field, e]) => (
                <li key={field}>
                  <Button variant="link" isInline onClick={() => document.getElementById(field)?.focus()}>
                    {e?.label}
                  </Button>
                </li>
              ))}
            </ul>
          </Alert>
        )}
      </div>
      <Fields value={context}>{children}</Fields>
    </PFForm>
  );
}
