// Actions on the selected rows of a list: confirmed once, with the effect and the number of rows; failures are
// shown by row.
import { Alert, Button } from '@patternfly/react-core';
import { useState } from 'react';
import { asApiError } from '../api/client';
import { fill, useText } from '../i18n';
import { runAll, type Failure } from '../lib/bulk';
import { FormDialog } from './form-dialog';
import { TextField } from './text-field';

/** Bulk is an action for many rows. */
export interface Bulk<T> {
  id: string;
  text: string;
  /** The effect, for the confirmation. */
  help: string;
  danger?: boolean;
  /** A dangerous action on a single row does not ask for its name to be typed. */
  untyped?: boolean;
  /** Whether it applies to a row; to all unless given. */
  applies?: (item: T) => boolean;
  /** The label of a text that is asked for once, and given to run for each row; optional for the person. */
  note?: string;
  run: (item: T, note: string) => Promise<unknown>;
}

interface BarProps<T> {
  items: readonly T[];
  bulk: readonly Bulk<T>[];
  nameOf: (item: T) => string;
  clear: () => void;
  /** Called with the rows on which it succeeded. */
  onDone: (done: readonly T[]) => void;
}

export function BulkBar<T>({ items, bulk, nameOf, clear, onDone }: BarProps<T>) {
  const { t, count } = useText();
  const [asked, ask] = useState<{ of: Bulk<T>; items: readonly T[]; left: number } | null>(null);
  return (
    <>
      <div className="basalt-bulk" role="toolbar" aria-label={t('bulk.title')}>
        <span aria-live="polite">{count('bulk.selected', items.length)}</span>
        {bulk.map((b) => {
          const can = items.filter((i) => b.applies?.(i) ?? true);
          return (
            <Button
              key={b.id}
              variant="secondary"
              size="sm"
              isDanger={b.danger}
              isDisabled={can.length === 0}
              onClick={() => ask({ of: b, items: can, left: items.length - can.length })}
            >
              {b.text}
            </Button>
          );
        })}
        <Button variant="link" size="sm" onClick={clear}>
          {t('bulk.clear')}
        </Button>
      </div>
      {asked && <BulkDialog {...asked} nameOf={nameOf} onDone={onDone} onClose={() => ask(null)} />}
    </>
  );
}

interface DialogProps<T> {
  of: Bulk<T>;
  items: readonly T[];
  /** How many of the selected rows it does not apply to. */
  left: number;
  nameOf: (item: T) => string;
  onDone: (done: readonly T[]) => void;
  onClose: () => void;
}

const mostNames = 10;

export function BulkDialog<T>({ of, items: asked, left, nameOf, onDone, onClose }: DialogProps<T>) {
  const { t, count } = useText();
  const [items, setItems] = useState(asked);
  const [typed, setTyped] = useState('');
  const [note, setNote] = useState('');
  const [ended, setEnded] = useState(0);
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<readonly Failure<T>[]>([]);
  const n = String(items.length);
  // One row is shown by its name, several by their number.
  const wanted = asked.length === 1 ? asked.map(nameOf)[0] : String(asked.length);
  const asks = of.danger && !(of.untyped && asked.length === 1) && failed.length === 0;
  const sure = !asks || typed === wanted;
  const run = async () => {
    setBusy(true);
    setEnded(0);
    const failures = await runAll(items, (i) => of.run(i, note.trim()), setEnded);
    setBusy(false);
    const bad = failures.map((f) => f.item);
    onDone(items.filter((i) => !bad.includes(i)));
    if (bad.length === 0) return onClose();
    setFailed(failures);
    setItems(bad);
  };
  return (
    <FormDialog
      title={
        asked.length === 1
          ? t('bulk.confirmOne', { action: of.text, name: asked.map(nameOf)[0] ?? '' })
          : fill(count('bulk.confirm', items.length), { action: of.text })
      }
      help={of.help}
      action={failed.length > 0 ? t('error.retry') : of.text}
      leave={failed.length > 0 ? t('common.close') : undefined}
      danger={of.danger}
      disabled={!sure}
      busy={busy}
      error={null}
      onSubmit={() => sure && void run()}
      onClose={onClose}
    >
      {failed.length > 0 ? (
        <Alert variant="danger" isInline isLiveRegion component="p" title={count('bulk.failed', failed.length)}>
          <ul>
            {failed.map(({ item, error }) => (
              <li key={nameOf(item)}>
                <strong>{nameOf(item)}</strong>: <Why error={error} />
              </li>
            ))}
          </ul>
        </Alert>
      ) : (
        <ul className="basalt-names">
          {items.slice(0, mostNames).map((i) => (
            <li key={nameOf(i)}>{nameOf(i)}</li>
          ))}
          {items.length > mostNames && <li>{count('bulk.more', items.length - mostNames)}</li>}
        </ul>
      )}
      {left > 0 && <p className="basalt-note">{count('bulk.left', left)}</p>}
      {of.note && failed.length === 0 && <TextField id="bulk-note" label={of.note} value={note} onChange={setNote} />}
      {asks && (
        <TextField
          id="bulk-sure"
          label={asked.length === 1 ? t('one.deleteConfirm', { name: wanted ?? '' }) : t('bulk.type', { n })}
          value={typed}
          onChange={(v) => setTyped(v.trim())}
        />
      )}
      <p role="status">{busy && t('bulk.progress', { done: ended, n })}</p>
    </FormDialog>
  );
}

function Why({ error }: { error: unknown }) {
  const { t } = useText();
  const e = asApiError(error);
  return <>{e.code === 'unreachable' ? t('error.unreachable') : [e.message, e.hint].filter(Boolean).join('; ')}</>;
}
