// A list of objects: a table that becomes cards on a phone, with filters, order, export, actions on its rows, and a
// hint when it is empty. The server sorts what it pages (useListing); complete lists are sorted here. A list
// without a name is a table in another page's text.
import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  Skeleton,
} from '@patternfly/react-core';
import { useMemo, useState, type ReactNode } from 'react';
import { useText } from '../i18n';
import { useParam } from '../lib/address';
import { csv, fileName } from '../lib/csv';
import { save } from '../lib/download';
import { narrowed as isNarrowed } from '../lib/narrow';
import { fieldOf, sorted } from '../lib/order';
import { between, extent, kept, nobody, toggled, type Selection } from '../lib/selection';
import { shownColumns } from '../lib/view';
import { Actions, type Action } from './actions';
import { ErrorAlert } from './error';
import { BulkBar, type Bulk } from './list-bulk';
import { FacetSelect, LabelFilter, ListFilter } from './list-filter';
import { ListPager } from './list-pager';
import { Table, type Column, type Selecting, type Sorting } from './list-table';
import { ListView, useView } from './list-view';
import type { Listing, Pages } from './list-state';
import { textOf } from './text-of';

export type { Bulk } from './list-bulk';
export type { Column } from './list-table';
export { useListing, usePages, useProjectListing, type Listing } from './list-state';

interface Thing {
  meta?: { id?: string; name?: string; labels?: Record<string, string> };
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  keyOf: (item: T) => string;
  empty: ReactNode;
  /** Key of its stored settings, and the name of its export file. */
  name?: string;
  /** What the server searches and sorts; otherwise complete data. */
  list?: Listing<T>;
  query?: { data?: { items: T[]; continue?: string }; error: unknown; isPending: boolean; refetch: () => unknown };
  pages?: Pages;
  /** The actions of a row, whose name is nameOf. */
  actions?: (item: T) => (Action | false | undefined)[];
  bulk?: readonly Bulk<T>[];
  nameOf?: (item: T) => string;
}

const named = (item: unknown) => (item as Thing).meta?.name ?? '';

const nothing: never[] = [];
const pending = { data: undefined, error: null, isPending: true, refetch: () => undefined };

export function ObjectList<T>(props: Props<T>) {
  const { name, list, label, keyOf, empty, bulk, nameOf = named } = props;
  const { t, language } = useText();
  const query = list?.query ?? props.query ?? pending;
  const pages = list?.pages ?? props.pages;
  const [order, setOrder] = useParam(`${name}.sort`);
  const columns = useColumns(props);
  const [view, setView] = useView(name ?? '');
  const [seen, setSeen] = useState<Selection>(nobody);
  const [last, setLast] = useState('');
  const [exporting, setExporting] = useState(false);
  const [exportError, setExportError] = useState<unknown>(null);

  const raw: T[] = query.data?.items ?? nothing;
  const items = useMemo(() => {
    const by = columns.find((c) => c.id === fieldOf(order));
    return list || !by ? raw : sorted(raw, valueOf(by), order, language);
  }, [list, raw, columns, order, language]);
  const sort = list ? list.sort : order;
  const setSort = list ? (v: string) => list.change({ sort: v }) : setOrder;
  const fieldOfColumn = (c: Column<T>) => (list ? c.sort : c.control ? undefined : c.id);
  // Only complete data can be sorted here: pages from another source keep their order.
  const sorting: Sorting<T> | undefined =
    name && (list ?? !pages) ? { sort, set: setSort, fieldOf: fieldOfColumn } : undefined;

  const keys = useMemo(() => items.map(keyOf), [items, keyOf]);
  const selected = kept(seen, keys);
  const selecting: Selecting<T> | undefined = bulk?.length
    ? {
        selected,
        select: (key, range) => {
          setSeen(range && last ? between(selected, keys, last, key) : toggled(selected, key));
          setLast(key);
        },
        selectAll: () => setSeen(extent(selected, keys) === 'all' ? nobody : new Set(keys)),
        nameOf,
      }
    : undefined;

  const save_ = async () => {
    setExporting(true);
    setExportError(null);
    try {
      const rows = list ? await list.all() : items;
      const exported = columns.filter((c) => !c.control);
      const table = rows.map((r) => exported.map((c) => valueOf(c)(r)));
      save(fileName(name ?? 'list', new Date()), 'text/csv', csv([exported.map((c) => c.title), ...table]));
    } catch (e) {
      setExportError(e);
    }
    setExporting(false);
  };

  const first = !pages || pages.page === 1;
  const none = query.data && items.length === 0 && first;
  const narrowed = list !== undefined && isNarrowed(list.values);
  const shown = name ? shownColumns(columns, view) : columns.filter((c) => !c.extra);
  return (
    <div className="basalt-list">
      {name && !(none && !narrowed) && (
        <ListView
          columns={columns.filter((c) => !c.control)}
          view={view}
          setView={setView}
          sort={sort}
          setSort={setSort}
          fieldOfColumn={sorting ? fieldOfColumn : () => undefined}
          onExport={() => void save_()}
          exporting={exporting}
        >
          {list && <Filters label={label} list={list} />}
        </ListView>
      )}
      <ErrorAlert error={exportError} onClose={() => setExportError(null)} />
      <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      {query.isPending && <Skeleton height="8rem" screenreaderText={t('app.loading')} />}
      {none && (narrowed ? <NoMatch list={list} /> : empty)}
      {bulk && selected.size > 0 && (
        <BulkBar
          items={items.filter((i) => selected.has(keyOf(i)))}
          bulk={bulk}
          nameOf={nameOf}
          clear={() => setSeen(nobody)}
          onDone={(done) => {
            const left = keys.filter((k) => !done.some((d) => keyOf(d) === k));
            setSeen(kept(selected, left));
            void query.refetch();
          }}
        />
      )}
      {items.length > 0 && (
        <Table
          label={label}
          items={items}
          columns={shown}
          keyOf={keyOf}
          density={name ? view.density : undefined}
          sorting={sorting}
          selecting={selecting}
        />
      )}
      {pages && query.data && (
        <ListPager label={label} pages={pages} shown={items.length} next={query.data.continue} total={list?.total} />
      )}
    </div>
  );
}

const valueOf = <T,>(c: Column<T>) => c.value ?? ((item: T) => textOf(c.cell(item)));

const labelsOf = (item: unknown) =>
  Object.entries((item as Thing).meta?.labels ?? {})
    .map(([k, v]) => (v ? `${k}=${v}` : k))
    .join(', ');

/** useColumns returns a list's own columns, optional ones that every kind has, and the row's actions. */
function useColumns<T>({ columns, list, actions, nameOf = named }: Props<T>): Column<T>[] {
  const { t } = useText();
  const paged = list !== undefined && list.labelled;
  return useMemo(() => {
    const all = [...columns];
    if (paged) {
      all.push({ id: 'labels', title: t('list.labelsColumn'), extra: true, cell: (i) => labelsOf(i) || '–' });
      all.push({ id: 'id', title: t('list.id'), extra: true, sort: 'id', cell: (i) => (i as Thing).meta?.id ?? '' });
    }
    if (actions)
      all.push({
        id: 'actions',
        title: t('common.actions'),
        control: true,
        cell: (i) => <Actions of={nameOf(i)} actions={actions(i)} />,
      });
    return all;
  }, [columns, paged, actions, nameOf, t]);
}

function Filters<T>({ label, list }: { label: string; list: Listing<T> }) {
  const { values, change } = list;
  return (
    <>
      <ListFilter label={label} search={values.search ?? ''} set={list.search} />
      {list.facets.map((f) => (
        <FacetSelect key={f.id} of={f} value={values[f.id] ?? ''} set={(v) => change({ [f.id]: v, ...f.clears })} />
      ))}
      {list.labelled && <LabelFilter value={values.labels ?? ''} set={(labels) => change({ labels })} />}
    </>
  );
}

function NoMatch<T>({ list }: { list?: Listing<T> }) {
  const { t } = useText();
  const search = list?.values.search;
  const clear = () =>
    list?.change(
      Object.fromEntries(
        Object.keys(list.values)
          .filter((n) => n !== 'sort')
          .map((n) => [n, '']),
      ),
    );
  return (
    <EmptyState titleText={search ? t('common.noMatch', { search }) : t('list.noMatch')} headingLevel="h2">
      <EmptyStateBody>{t(search ? 'common.noMatchHelp' : 'list.noMatchHelp')}</EmptyStateBody>
      <EmptyStateFooter>
        <EmptyStateActions>
          <Button variant="link" onClick={clear}>
            {t('list.clear')}
          </Button>
        </EmptyStateActions>
      </EmptyStateFooter>
    </EmptyState>
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
