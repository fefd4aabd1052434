// One price book: its editor, and past usage at its prices.
import { Alert, Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { TagsIcon } from '@patternfly/react-icons';
import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { ownsBook, useBook, type Book } from '../../api/prices';
import type { Session } from '../../api/session';
import { priceBooks } from '../../api/resource';
import { Loading } from '../../parts/loading';
import { useText, type Key } from '../../i18n';
import {
  bookForm,
  newPrice,
  specOf,
  type BookForm,
  type CommitmentRow,
  type DiscountRow,
  type PriceRow,
} from '../../lib/book';
import { startOf, starts, type Start } from '../../lib/effective';
import { nextKey } from '../../lib/merge';
import { meters, units } from '../../lib/meter';
import { applied } from '../../lib/shell';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { ErrorAlert } from '../../parts/error';
import { Form } from '../../parts/form';
import { Empty } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { Same } from '../../parts/same';
import { SelectField, TextField } from '../../parts/text-field';
import { Time } from '../../parts/time';
import { CommitmentRows, DiscountRows, meterName, missing, PriceRows } from './rows';
import { Overview } from './overview';
import { Sample } from './sample';
import { Simulation } from './simulation';
import { Versions } from './versions';

function Part({
  title,
  help,
  add,
  onAdd,
  children,
}: {
  title: string;
  help: string;
  add: string;
  onAdd: () => void;
  children: ReactNode;
}) {
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{help}</p>
        {children}
        <div>
          <Button variant="secondary" onClick={onAdd}>
            {add}
          </Button>
        </div>
      </CardBody>
    </Card>
  );
}

const parts: Record<keyof BookForm, Key> = {
  prices: 'price.meters',
  discounts: 'price.discounts',
  commitments: 'price.commitments',
  minimum: 'price.minimum',
  seller: 'price.seller',
  address: 'price.sellerAddress',
  taxId: 'price.sellerTaxId',
};

/** useRowWords returns a function that describes a row of the editor briefly. */
function useRowWords(currency: string) {
  const { t, has } = useText();
  const meter = (m: string) => (m ? meterName(has, t, m) : t('price.allMeters'));
  const unit = (r: { meter: string; unit: string }) => {
    const found = units[r.meter]?.find((u) => u.id === r.unit);
    return found ? t(found.text) : '';
  };
  const price = (r: PriceRow) => (r.raw ? `${r.raw.priceMicros} / ${r.raw.per}` : `${r.price} ${currency} ${unit(r)}`);
  const tiers = (r: PriceRow) => r.tiers.map((x) => `≤ ${x.upTo}: ${x.price}`);
  return (field: keyof BookForm, row: unknown): string | undefined => {
    switch (field) {
      case 'prices': {
        const r = row as PriceRow;
        return [`${meter(r.meter)}: ${price(r)}`, r.from, ...tiers(r)].filter(Boolean).join(', ');
      }
      case 'commitments': {
        const r = row as CommitmentRow;
        return [`${meter(r.meter)}: ${r.quantity} ${unit(r)}, ${r.price} ${currency}`, r.from, r.until]
          .filter(Boolean)
          .join(', ');
      }
      case 'discounts': {
        const r = row as DiscountRow;
        const of = r.raw?.meters ? t('price.someMeters', { n: r.raw.meters.length }) : meter(r.meter);
        return [`${of}: ${r.percent} %`, r.from, r.until].filter(Boolean).join(', ');
      }
      default:
        return undefined;
    }
  };
}

/** Editor edits a book's prices; the wizard uses it too. */
export function Editor({
  book,
  onSaved,
  onEdited,
  beside,
}: {
  book: Book;
  onSaved?: (b: Book) => void;
  onEdited?: (unsaved: boolean) => void;
  /** What is shown beside it; draft is the edited prices, once they are valid. */
  beside?: (draft: Book['spec'] | undefined) => ReactNode;
}) {
  const { t, has } = useText();
  const client = useQueryClient();
  const [start, setStart] = useState<Start>('hour');
  const { currency } = book.spec;
  const edit = useEdit<Book, BookForm>({
    of: priceBooks,
    object: book,
    fields: (b) => bookForm((b ?? book).spec),
    body: (b, form) => ({
      kind: book.kind,
      meta: (b ?? book).meta,
      // Without a time, it is the server's next full hour.
      spec: { ...specOf(currency, form).spec, ...(start !== 'hour' && { effectiveFrom: startOf(start, new Date()) }) },
    }),
    onSaved: (saved) => {
      for (const what of ['simulation', 'wallet']) void client.invalidateQueries({ queryKey: [what] });
      onEdited?.(false);
      onSaved?.(saved);
    },
  });
  const { form, edited } = edit;
  const { problems } = specOf(currency, form);
  const words = useRowWords(currency);
  const put =
    <K extends keyof BookForm>(name: K) =>
    (value: BookForm[K]) => (onEdited?.(true), edit.set(name)(value));
  const rows = { currency };
  const none = missing(form);
  const editor = (
    <Form
      className="basalt-stack"
      long
      schema="PriceBook"
      body={edit.body}
      wrong={Object.entries(problems).map(([path, what]) => ({ path, text: t(`price.problem.${what}`) }))}
      busy={edit.busy}
      error={edit.error}
      onSubmit={edit.submit}
    >
      {book.spec.effectiveFrom && (
        <p>
          {t('price.version', { n: book.spec.version ?? 1 })} <Time at={book.spec.effectiveFrom} />
        </p>
      )}
      <Conflict edit={edit} label={(f) => t(parts[f], { currency })} text={words} />
      <Part
        title={t('price.meters')}
        help={t('price.metersHelp')}
        add={t('price.add')}
        onAdd={() => put('prices')([...form.prices, newPrice(none[0] ?? meters[0] ?? '')])}
      >
        {none.length > 0 && (
          <Alert
            component="p"
            variant="warning"
            isInline
            isPlain
            title={t('price.missing', { meters: none.map((m) => meterName(has, t, m)).join(', ') })}
          />
        )}
        <PriceRows {...rows} rows={form.prices} set={put('prices')} />
      </Part>
      <Part
        title={t('price.discounts')}
        help={t('price.discountsHelp')}
        add={t('price.discountAdd')}
        onAdd={() =>
          put('discounts')([...form.discounts, { key: nextKey(), meter: '', percent: '', from: '', until: '' }])
        }
      >
        <DiscountRows {...rows} rows={form.discounts} set={put('discounts')} />
      </Part>
      <Part
        title={t('price.commitments')}
        help={t('price.commitmentsHelp')}
        add={t('price.commitmentAdd')}
        onAdd={() =>
          put('commitments')([
            ...form.commitments,
            {
              key: nextKey(),
              meter: 'gpu-nanoseconds',
              unit: 'gpu-hour',
              quantity: '',
              price: '',
              from: '',
              until: '',
            },
          ])
        }
      >
        <CommitmentRows {...rows} rows={form.commitments} set={put('commitments')} />
      </Part>
      <Card>
        <CardTitle component="h2">{t('price.rest')}</CardTitle>
        <CardBody className="basalt-columns">
          <TextField
            id="book-minimum"
            label={t('price.minimum', { currency })}
            path="spec.minimumMicros"
            value={form.minimum}
            onChange={put('minimum')}
          />
          <TextField
            id="book-seller"
            label={t('price.seller')}
            path="spec.seller.name"
            value={form.seller}
            onChange={put('seller')}
          />
          <TextField
            id="book-address"
            rows={3}
            label={t('price.sellerAddress')}
            help={t('cust.addressHelp')}
            path="spec.seller.address"
            value={form.address}
            onChange={put('address')}
          />
          <TextField
            id="book-tax-id"
            label={t('price.sellerTaxId')}
            path="spec.seller.taxId"
            value={form.taxId}
            onChange={put('taxId')}
          />
        </CardBody>
      </Card>
      <SelectField
        id="book-from"
        label={t('price.effective')}
        help={t('price.effectiveHelp')}
        value={start}
        onChange={(v) => setStart(v as Start)}
        options={starts.map((s) => [s, t(`price.effective.${s}`)])}
      />
      <div className="basalt-actions">
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy || !edited || edit.gone}>
          {t('price.save')}
        </Button>
        {edited && (
          <Button variant="link" onClick={() => (edit.reset(), onEdited?.(false))}>
            {t('price.reset')}
          </Button>
        )}
        <span role="status">{edit.saved ? t('price.saved') : edited ? t('price.unsaved') : ''}</span>
      </div>
      <Same cli={applied({ kind: book.kind, meta: { name: book.meta.name }, spec: edit.body.spec })} curl={edit.curl} />
    </Form>
  );
  if (!beside) return editor;
  const draft = edited && Object.keys(problems).length === 0 ? specOf(currency, form).spec : undefined;
  return (
    <div className="basalt-beside">
      {editor}
      <div className="basalt-stack">{beside(draft)}</div>
    </div>
  );
}

export function BookPage({ id, session }: { id: string; session: Session }) {
  const { t } = useText();
  const query = useBook(id);
  const [unsaved, setUnsaved] = useState(false);
  const above = { href: '/prices', title: t('price.title') };
  if (query.isPending) return <Loading />;
  if (query.isError)
    return (
      <PageBody title={id} above={above}>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      </PageBody>
    );
  if (!query.data)
    return (
      <PageBody title={t('price.gone')} above={above}>
        <Empty
          title={t('price.gone')}
          help={t('price.goneHelp')}
          icon={TagsIcon}
          action={<Link href="/prices">{t('price.toList')}</Link>}
        />
      </PageBody>
    );
  const book = query.data;
  if (!ownsBook(session, query.data))
    return (
      <PageBody title={query.data.meta.name} above={above}>
        <div className="basalt-stack">
          <p className="basalt-note">{t('price.notOwn')}</p>
          <Overview book={query.data.spec} />
          <Sample book={query.data} />
        </div>
      </PageBody>
    );
  return (
    <PageBody title={query.data.meta.name} above={above}>
      <div className="basalt-stack">
        <Overview book={query.data.spec} />
        <Editor
          book={query.data}
          onEdited={setUnsaved}
          beside={(draft) => (
            <>
              <Sample book={book} draft={draft} />
              <Simulation book={book} unsaved={unsaved} />
              <Versions book={book} />
            </>
          )}
        />
      </div>
    </PageBody>
  );
}
