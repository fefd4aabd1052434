// A list of objects: a table that becomes cards on a phone, pages, a filter,
// and what to do when it is empty.
import { EmptyState, EmptyStateActions, EmptyStateBody, EmptyStateFooter, Skeleton } from '@patternfly/react-core';
import type { ReactNode } from 'react';
import { useText } from '../i18n';
import { ErrorAlert } from './error';
import { ListFilter } from './list-filter';
import { ListPager } from './list-pager';
import { Table, type Column } from './list-table';
import type { Filter, Pages } from './list-state';

export type { Column } from './list-table';
export { useFilter, useListing, usePages } from './list-state';

interface Props<T> {
  label: string;
  columns: Column<T>[];
  query: { data?: { items: T[]; continue?: string }; error: unknown; isPending: boolean; refetch: () => unknown };
  keyOf: (item: T) => string;
  empty: ReactNode;
  pages?: Pages;
  filter?: Filter;
}

export function ObjectList<T>({ label, columns, query, keyOf, empty, pages, filter }: Props<T>) {
  const { t } = useText();
  const items = query.data?.items ?? [];
  const first = !pages || pages.page === 1;
  return (
    <>
      {filter && <ListFilter {...filter} />}
      <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      {query.isPending && <Skeleton height="8rem" screenreaderText={t('app.loading')} />}
      {query.data &&
        items.length === 0 &&
        first &&
        (filter?.search ? (
          <EmptyState titleText={t('common.noMatch', { search: filter.search })} headingLevel="h2">
            <EmptyStateBody>{t('common.noMatchHelp')}</EmptyStateBody>
          </EmptyState>
        ) : (
          empty
        ))}
      {items.length > 0 && <Table label={label} items={items} columns={columns} keyOf={keyOf} />}
      {pages && query.data && <ListPager pages={pages} shown={items.length} next={query.data.continue} />}
    </>
  );
}

export function Empty({
  title,
  help,
  icon,
  action,
}: {
  title: string;
  help: string;
  icon: React.ComponentType;
  action?: ReactNode;
}) {
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
