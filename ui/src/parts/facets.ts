// Filters that several lists share.
import { useText } from '../i18n';
import type { Facet } from '../lib/narrow';
import type { State } from '../lib/state';

/** useStates returns a filter by state; text translates the states. */
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

/** useMadeStates returns the filter by state for objects that are created, exist and are deleted. */
export function useMadeStates(): Facet[] {
  const { t } = useText();
  return useStates(made, (s) => t(`state.${s}`));
}
