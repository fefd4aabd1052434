// One price book: its editor, and what was used by its prices.
import { Alert, Button, Card, CardBody, CardTitle, Form } from '@patternfly/react-core';
import { TagsIcon } from '@patternfly/react-icons';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { atField } from '../../api/fields';
import { asApiError } from '../../api/client';
import { useBook, useSaveBook, type Book } from '../../api/prices';
import { Loading } from '../../app';
import { useText } from '../../i18n';
import { bookForm, newPrice, nextKey, specOf, type BookForm } from '../../lib/book';
import { meters } from '../../lib/meter';
import { applied, asCurl } from '../../lib/shell';
import { ErrorAlert } from '../../parts/error';
import { Empty } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';
import { CommitmentRows, DiscountRows, meterName, missing, PriceRows, TaxRows } from './rows';
import { Simulation } from './simulation';

function Part({ title, help, add, onAdd, children }: { title: string; help: string; add: string; onAdd: () => void; children: ReactNode }) {
  return (
    <Card>
      <CardTitle component="h2">{title}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{help}</p>
        {children}
        <div><Button variant="secondary" onClick={onAdd}>{add}</Button></div>
      </CardBody>
    </Card>
  );
}

/** Editor of a book's prices; the wizard has it too. */
export function Editor({ book, onSaved, onEdited }: { book: Book; onSaved?: (b: Book) => void; onEdited?: (unsaved: boolean) => void }) {
  const { t, has } = useText();
  const [base, setBase] = useState(book); // what the form shows: a change by others meanwhile is a conflict, which the server says
  const [form, setForm] = useState(() => bookForm(book.spec));
  const [edited, setEdited] = useState(false);
  const [tried, setTried] = useState(false);
  const mark = (unsaved: boolean) => (setEdited(unsaved), onEdited?.(unsaved));
  const save = useSaveBook(base, (saved) => {
    setBase(saved);
    setForm(bookForm(saved.spec));
    mark(false);
    onSaved?.(saved);
  });
  const { currency } = base.spec;
  const { spec, problems } = specOf(currency, form);
  const put = <K extends keyof BookForm>(name: K) => (value: BookForm[K]) => {
    save.reset();
    mark(true);
    setForm((f) => ({ ...f, [name]: value }));
  };
  const at = (path: string) => (tried && problems[path] ? t(`price.problem.${problems[path]}`) : atField(save.error, path));
  const rows = { currency, at };
  const none = missing(form);
  const submit = () => (setTried(true), Object.keys(problems).length === 0 && save.mutate(spec));
  // What the API says of a field stands there: the rows have them all but these.
  const field = save.error ? asApiError(save.error).field : undefined;
  const above = field?.startsWith('spec.') ? null : save.error;
  return (
    <Form className="basalt-stack" onSubmit={(e) => (e.preventDefault(), submit())} noValidate>
      <ErrorAlert error={above} />
      <Part title={t('price.meters')} help={t('price.metersHelp')} add={t('price.add')} onAdd={() => put('prices')([...form.prices, newPrice(none[0] ?? meters[0] ?? '')])}>
        {none.length > 0 && <Alert component="p" variant="warning" isInline isPlain title={t('price.missing', { meters: none.map((m) => meterName(has, t, m)).join(', ') })} />}
        <PriceRows {...rows} rows={form.prices} set={put('prices')} />
      </Part>
      <Part title={t('price.taxes')} help={t('price.taxesHelp')} add={t('price.taxAdd')} onAdd={() => put('taxes')([...form.taxes, { key: nextKey(), name: '', percent: '' }])}>
        <TaxRows {...rows} rows={form.taxes} set={put('taxes')} />
      </Part>
      <Part title={t('price.discounts')} help={t('price.discountsHelp')} add={t('price.discountAdd')} onAdd={() => put('discounts')([...form.discounts, { key: nextKey(), meter: '', percent: '', from: '', until: '' }])}>
        <DiscountRows {...rows} rows={form.discounts} set={put('discounts')} />
      </Part>
      <Part title={t('price.commitments')} help={t('price.commitmentsHelp')} add={t('price.commitmentAdd')} onAdd={() => put('commitments')([...form.commitments, { key: nextKey(), meter: 'gpu-nanoseconds', unit: 'gpu-hour', quantity: '', price: '', from: '', until: '' }])}>
        <CommitmentRows {...rows} rows={form.commitments} set={put('commitments')} />
      </Part>
      <Card>
        <CardTitle component="h2">{t('price.rest')}</CardTitle>
        <CardBody className="basalt-columns">
          <TextField id="book-minimum" label={t('price.minimum', { currency })} error={at('spec.minimumMicros')} value={form.minimum} onChange={put('minimum')} />
          <TextField id="book-seller" label={t('price.seller')} error={at('spec.seller.name')} value={form.seller} onChange={put('seller')} />
          <TextField id="book-address" rows={3} label={t('price.sellerAddress')} help={t('cust.addressHelp')} error={at('spec.seller.address')} value={form.address} onChange={put('address')} />
          <TextField id="book-tax-id" label={t('price.sellerTaxId')} error={at('spec.seller.taxId')} value={form.taxId} onChange={put('taxId')} />
        </CardBody>
      </Card>
      <ErrorAlert error={above ? null : save.error} />
      <div className="basalt-actions">
        <Button type="submit" isLoading={save.isPending} isDisabled={save.isPending || !edited}>{t('price.save')}</Button>
        {edited && <Button variant="link" onClick={() => (setForm(bookForm(base.spec)), save.reset(), setTried(false), mark(false))}>{t('price.reset')}</Button>}
        <span role="status">{save.isSuccess ? t('price.saved') : edited ? t('price.unsaved') : ''}</span>
      </div>
      <Same cli={applied({ kind: base.kind, meta: { name: base.meta.name }, spec })} curl={asCurl('PUT', `/v1/price-books/${base.meta.id}`, { kind: base.kind, meta: { name: base.meta.name, revision: base.meta.revision }, spec })} />
    </Form>
  );
}

export function BookPage({ id }: { id: string }) {
  const { t } = useText();
  const query = useBook(id);
  const [unsaved, setUnsaved] = useState(false);
  const above = { href: '/prices', title: t('price.title') };
  if (query.isPending) return <Loading />;
  if (query.isError) return <PageBody title={id} above={above}><ErrorAlert error={query.error} onRetry={() => void query.refetch()} /></PageBody>;
  if (!query.data)
    return (
      <PageBody title={t('price.gone')} above={above}>
        <Empty title={t('price.gone')} help={t('price.goneHelp')} icon={TagsIcon} action={<Link href="/prices">{t('price.toList')}</Link>} />
      </PageBody>
    );
  return (
    <PageBody title={query.data.meta.name} above={above}>
      <div className="basalt-beside">
        <Editor book={query.data} onEdited={setUnsaved} />
        <Simulation book={query.data} unsaved={unsaved} />
      </div>
    </PageBody>
  );
}
