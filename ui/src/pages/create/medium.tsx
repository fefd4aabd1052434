// A new instance without an image: what its system is installed from, and on.
import type { Schemas } from '../../api/client';
import { useText } from '../../i18n';
import type { Draft } from '../../lib/draft';
import { SelectField, TextField } from '../../parts/text-field';

interface Props {
  draft: Draft;
  set: (change: (d: Draft) => Draft) => void;
  media: Schemas['Image'][];
}

export function MediumFields({ draft, set, media }: Props) {
  const { t } = useText();
  return (
    <>
      <p className="basalt-note">{t('new.mediumHelp')}</p>
      <SelectField
        id="new-second"
        label={t('new.second')}
        help={t('new.secondHelp')}
        path="spec.media"
        value={draft.second}
        onChange={(second) => set((d) => ({ ...d, second }))}
        options={[['', t('common.none')], ...media.map((i): [string, string] => [i.meta.name, i.meta.name])]}
      />
      <TextField
        id="new-root"
        type="number"
        label={t('new.rootGib')}
        help={t('new.rootHelp')}
        path="spec.rootBytes"
        value={draft.rootGib}
        onChange={(rootGib) => set((d) => ({ ...d, rootGib }))}
      />
    </>
  );
}
