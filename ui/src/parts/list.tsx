// A list of objects: a table that becomes cards on a phone, pages, a filter by
// name, and what to do when it is empty.
import { Button, EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, SearchInput, Skeleton } from '@patternfly/react-core';
import { AngleLeftIcon, AngleRightIcon } from '@patternfly/react-icons';
import { Table, Tbody, Td, Th, Thead, Tr } from '@patternfly/react-table';
import { useState, type ReactNode } from 'react';
import { useText } from '../i18n';
import { ErrorAlert } from './error';

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  query: { data?: { items: T[]; continue?: string }; error: unknown; isPending: boolean; refetch: () => unknown };
  keyOf: (item: T) => string;
  empty: ReactNode;
  pages?: Pages;
  filter?: { name: string; set: (name: string) => void };
}

export interface Pages {
  token: string;
  page: number;
  next: (token: string) => void;
  previous: () => void;
  reset: () => void;
}

/** usePages walks a list's pages by their tokens. */
export function usePages(): Pages {
  const [tokens, set] = useState<string[]>([]);
  return {
    token: tokens.at(-1) ?? '',
    page: tokens.length + 1,
    next: (token) => set((t) => [...t, token]),
    previous: () => set((t) => t.slice(0, -1)),
    reset: () => set([]),
  };
}

function NameFilter({ name, set }: { name: string; set: (name: string) => void }) {
  const { t } = useText();
  const [value, setValue] = useState(name);
  return (
    <form role="search" className="basalt-filter" onSubmit={(e) => (e.preventDefault(), set(value.trim()))}>
      <SearchInput
        aria-label={t('common.filterName')}
        placeholder={t('common.filterName')}
        value={value}
        resetButtonLabel={t('common.clear')}
        onChange={(_, v) => setValue(v)}
        onSearch={(e) => (e.preventDefault(), set(value.trim()))}
        onClear={() => (setValue(''), set(''))}
        submitSearchButtonLabel={t('common.filterName')}
      />
    </form>
  );
}

export function ObjectList<T>({ label, columns, query, keyOf, empty, pages, filter }: Props<T>) {
  const { t } = useText();
  const items = query.data?.items ?? [];
  const next = query.data?.continue;
  const first = !pages || pages.page === 1;
  return (
    <>
      {filter && <NameFilter {...filter} />}
      <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      {query.isPending && <Skeleton height="8rem" screenreaderText={t('app.loading')} />}
      {query.data && items.length === 0 && first && (filter?.name ? <EmptyState titleText={t('common.noMatch', { name: filter.name })} headingLevel="h2"><EmptyStateBody>{t('common.noMatchHelp')}</EmptyStateBody></EmptyState> : empty)}
      {items.length > 0 && (
        <Table aria-label={label} variant="compact" gridBreakPoint="grid-md">
          <Thead>
            <Tr>{columns.map((c) => <Th key={c.title} modifier="wrap">{c.title}</Th>)}</Tr>
          </Thead>
          <Tbody>
            {items.map((item) => (
              <Tr key={keyOf(item)}>{columns.map((c) => <Td key={c.title} dataLabel={c.title}>{c.cell(item)}</Td>)}</Tr>
            ))}
          </Tbody>
        </Table>
      )}
      {pages && (next || !first) && (
        <nav className="basalt-pager" aria-label={t('common.pages')}>
          <Button variant="plain" icon={<AngleLeftIcon />} aria-label={t('common.previous')} isDisabled={first} onClick={pages.previous} />
          <span aria-live="polite">{t('common.page', { page: pages.page })}</span>
          <Button variant="plain" icon={<AngleRightIcon />} aria-label={t('common.next')} isDisabled={!next} onClick={() => next && pages.next(next)} />
        </nav>
      )}
    </>
  );
}

export function Empty({ title, help, icon, action }: { title: string; help: string; icon: React.ComponentType; action?: ReactNode }) {
  return (
    <EmptyState titleText={title} headingLevel="h2" icon={icon}>
      <EmptyStateBody>{help}</EmptyStateBody>
      {action && (
        <EmptyStateFooter>
          <EmptyStateActions>{action}</EmptyStateActions>
        </EmptyStateFooter>
      )}
    </EmptyState>
  );
}
