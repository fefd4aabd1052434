// The price books.
import { Button } from '@patternfly/react-core';
import { TagsIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, ok } from '../../api/client';
import { usePriceBooks } from '../../api/customers';
import { ownsBook, type Book } from '../../api/prices';
import type { Session } from '../../api/session';
import { useText } from '../../i18n';
import { applied, asCurl } from '../../lib/shell';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { SelectField, TextField } from '../../parts/text-field';
import { Time } from '../../parts/time';

function CreateBook({ books, onMade, onClose }: { books: Book[]; onMade: (b: Book) => void; onClose: () => void }) {
  const { t } = useText();
  const [form, setForm] = useState({
    name: '',
    currency: books[0]?.spec.currency ?? 'EUR',
    from: books.find((b) => b.meta.name === 'default')?.meta.id ?? books[0]?.meta.id ?? '',
  });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const source = books.find((b) => b.meta.id === form.from);
  const body: Book = {
    kind: 'PriceBook',
    meta: { name: form.name.trim() },
    spec: { ...(source?.spec ?? { prices: [] }), currency: form.currency.trim().toUpperCase() },
  };
  const create = useMutation({ mutationFn: () => ok(api.POST('/v1/price-books', { body })), onSuccess: onMade });
  return (
    <FormDialog
      title={t('price.create')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="PriceBook"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <TextField
        id="book-name"
        label={t('common.name')}
        help={t('cust.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={set('name')}
        required
      />
      <TextField
        id="book-currency"
        label={t('price.currency')}
        help={t('price.currencyHelp')}
        path="spec.currency"
        value={form.currency}
        onChange={set('currency')}
        required
      />
      <SelectField
        id="book-from"
        label={t('price.from')}
        value={form.from}
        onChange={set('from')}
        options={[...books.map((b): [string, string] => [b.meta.id ?? '', b.meta.name]), ['', t('common.none')]]}
      />
      <Same cli={applied(body)} curl={asCurl('POST', '/v1/price-books', body)} />
    </FormDialog>
  );
}

export function Prices({ session }: { session: Session }) {
  const { t } = useText();
  const [, go] = useLocation();
  const client = useQueryClient();
  const [creating, setCreating] = useState(false);
  const query = usePriceBooks();
  const again = () => void client.invalidateQueries({ queryKey: ['PriceBook', 'list'] });
  const removal = useRemoval<Book>({
    remove: (b) => ok(api.DELETE('/v1/price-books/{id}', { params: { path: { id: b.meta.id ?? '' } } })),
    title: (name) => t('price.deleteTitle', { name }),
    help: t('price.deleteHelp'),
  });
  const create = <Button onClick={() => setCreating(true)}>{t('price.create')}</Button>;
  const columns: Column<Book>[] = [
    { id: 'name', title: t('common.name'), cell: (b) => <Link href={`/prices/${b.meta.id}`}>{b.meta.name}</Link> },
    { id: 'currency', title: t('price.currency'), cell: (b) => b.spec.currency },
    { id: 'count', title: t('price.count'), value: (b) => b.spec.prices.length, cell: (b) => b.spec.prices.length },
    {
      id: 'changed',
      title: t('price.changed'),
      value: (b) => b.meta.updatedAt,
      cell: (b) => <Time at={b.meta.updatedAt} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (b) =>
        ownsBook(session, b) && (
          <Button
            variant="link"
            isInline
            isDanger
            aria-label={`${t('common.delete')}: ${b.meta.name}`}
            onClick={() => removal.ask(b)}
          >
            {t('common.delete')}
          </Button>
        ),
    },
  ];
  return (
    <PageBody title={t('price.title')} actions={create}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('price.help')}</p>
        <ObjectList
          name="price-books"
          label={t('price.title')}
          columns={columns}
          query={query}
          bulk={[removal.bulk((b) => ownsBook(session, b))]}
          keyOf={(b) => b.meta.id ?? b.meta.name}
          empty={<Empty title={t('price.empty')} help={t('price.emptyHelp')} icon={TagsIcon} action={create} />}
        />
      </div>
      {creating && query.data && (
        <CreateBook
          books={query.data.items}
          onClose={() => setCreating(false)}
          onMade={(b) => (again(), go(`/prices/${b.meta.id}`))}
        />
      )}
      {removal.dialog}
    </PageBody>
  );
}
