// Filters that several lists have.
import { useText } from '../i18n';
import type { Facet } from '../lib/narrow';
import type { State } from '../lib/state';

/** useStates is a filter by state, which says in words what each is. */
export function useStates<S extends string>(states: readonly S[], text: (s: S) => string): Facet[] {
  const { t } = useText();
  return [
    {
      id: 'state',
      field: 'state',
      label: t('common.state'),
      any: t('list.anyState'),
      options: states.map((value) => ({ value, label: text(value) })),
    },
  ];
}

const made: readonly Exclude<State, 'RollingBack'>[] = ['Pending', 'Creating', 'Ready', 'Deleting', 'Failed'];

/** useMadeStates is that of what is made, is there, and goes. */
export function useMadeStates(): Facet[] {
  const { t } = useText();
  return useStates(made, (s) => t(`state.${s}`));
}
