// A form that is validated before it is sent: by the constraints of the API's description, by the browser, and by
// the form's own rules. All errors are shown at their fields at once, including those of the server.
import { Alert, Button, Form as PFForm } from '@patternfly/react-core';
import { createContext, use, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { useForm, type FieldErrors } from 'react-hook-form';
import { asApiError } from '../api/client';
import { withHint } from '../api/fields';
import { useText, type Translation } from '../i18n';
import { causeIn } from '../lib/cause';
import { isEmpty, owner, problems, valueAt, type Problem, type SchemaName } from '../lib/problems';
import { ErrorAlert } from './error';
import { useGuard } from './guard';

interface Shown {
  /** Path of the field's value in the body; undefined if it is not sent as it is. */
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

/** useField registers a field of the surrounding form, and returns its error. */
export function useField(id: string, { path, label, required }: Shown): string | undefined {
  const { errors, register } = use(Fields);
  useEffect(() => register(id, { path, label, required }), [register, id, path, label, required]);
  return errors[id]?.text;
}

/** useWrong returns the error only, for the inputs of a field with several. */
export const useWrong = (id: string) => use(Fields).errors[id]?.text;

export interface Checked {
  /** The schema of the body; without one, only the fields' own rules are checked. */
  schema?: SchemaName;
  body?: unknown;
  /** Errors of the form's own rules, also across its fields. */
  wrong?: Problem[];
  busy: boolean;
  error: unknown;
  /** Errors of a dry run while the user types: shown at the fields without moving the focus. */
  live?: unknown;
  onSubmit: () => void;
}

interface Props extends Checked {
  id?: string;
  label?: string;
  className?: string;
  /** It is long: leaving it with changes asks for confirmation. */
  long?: boolean;
  children: ReactNode;
}

interface Served extends Problem {
  /** The value that the server's error refers to: the error is shown until the value changes. */
  value: string | undefined;
}

const serverProblems = (error: unknown, words: Translation): Problem[] =>
  error
    ? asApiError(error).fields.map((f) => ({
        path: f.field,
        text: withHint(causeIn(words, f.cause) ?? f.detail, f.hint),
      }))
    : [];

/** invalid returns what the browser itself reports of an input: it is required and empty, or not a number. */
function invalid(id: string): 'form.required' | 'form.number' | undefined {
  const { validity } = (document.getElementById(id) ?? {}) as { validity?: ValidityState };
  return validity?.badInput ? 'form.number' : validity?.valueMissing ? 'form.required' : undefined;
}

/** useChecks returns the errors of a form's fields, by their IDs. */
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
    // Errors that no field shows cannot be corrected here, so the server's validation decides.
    for (const p of schema ? problems(schema, body, text) : []) add(place(p.path), p.text);
    for (const p of [...served.current.error, ...served.current.live])
      if (JSON.stringify(valueAt(body, p.path)) === p.value) add(place(p.path), p.text);
    return new Map([...fields.current.keys()].flatMap((id) => (out.has(id) ? [[id, out.get(id) ?? '']] : [])));
  };
  const { trigger, handleSubmit, formState } = useForm<Record<string, unknown>>({
    shouldFocusError: false, // PatternFly's inputs are not registered, so the focus is set through the document
    resolver: () => {
      const now = served.current.live.map((p) => place(p.path));
      const found = [...check()].filter(([id]) => !narrowing.current || last.current.includes(id) || now.includes(id));
      last.current = found.map(([id]) => id);
      const error = ([id, message]: [string, string]) => [id, { type: fields.current.get(id)?.label ?? id, message }];
      return { values: {}, errors: Object.fromEntries(found.map(error)) as FieldErrors };
    },
  });

  /** serve shows the server's errors at their fields; loose keeps those without a field. */
  const serve = (of: 'error' | 'live', said: unknown) => {
    const given = serverProblems(said, text);
    served.current[of] = given.map((p) => ({ ...p, value: JSON.stringify(valueAt(body, p.path)) }));
    narrowing.current = of === 'live';
    const placed = given.length > 0 && given.every((p) => place(p.path) !== undefined);
    void trigger().then(() => {
      narrowing.current = false;
      setLoose((old) => ({ ...old, [of]: placed ? null : said }));
      if (of === 'error') setAttempt((n) => n + 1);
    });
  };
  // They belong to the body that was sent, not to later ones.
  /* eslint-disable react-hooks/exhaustive-deps */
  useEffect(() => {
    if (error) serve('error', error);
  }, [error]);
  useEffect(() => {
    if (live || served.current.live.length > 0) serve('live', live);
  }, [live]);
  /* eslint-enable react-hooks/exhaustive-deps */

  // Corrected errors disappear at once; new ones appear when the user leaves the field.
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
    // Nothing else is sent until the mutation reports that it is busy.
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
    /** The server's errors that no field shows. */
    loose: (loose.error === error && error) || (loose.live === live && live) || null,
    context: useMemo(() => ({ errors, register }), [errors, register]),
    submit,
    left: () => formState.isSubmitted && void trigger(),
  };
}

/** flat returns the form's errors by the IDs of its fields; an error's type is its field's label. */
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
