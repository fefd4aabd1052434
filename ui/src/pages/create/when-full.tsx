// What happens to a new instance when no node has room: it waits in the queue, for a time or for ever, or it is
// not created.
import { useText } from '../../i18n';
import type { Draft } from '../../lib/draft';
import { SelectField, TextField } from '../../parts/text-field';

export function WhenFullFields({ draft, set }: { draft: Draft; set: (d: Draft) => void }) {
  const { t } = useText();
  const options = (['queue', 'until', 'refuse'] as const).map((w): [string, string] => [w, t(`new.full.${w}`)]);
  return (
    <>
      <SelectField
        id="new-when-full"
        label={t('new.full')}
        path="spec.whenFull"
        value={draft.whenFull}
        onChange={(v) => set({ ...draft, whenFull: v as Draft['whenFull'] })}
        options={options}
      />
      {draft.whenFull === 'until' && (
        <TextField
          id="new-until"
          type="datetime-local"
          label={t('new.until')}
          help={t('new.untilHelp')}
          path="spec.queueUntil"
          value={draft.until}
          onChange={(until) => set({ ...draft, until })}
          required
        />
      )}
    </>
  );
}
