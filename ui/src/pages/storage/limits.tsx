// The limits of a volume.
import { TextInput } from '@patternfly/react-core';
import { useText } from '../../i18n';
import type { VolumeDraft } from '../../lib/volume';
import { Field } from '../../parts/field';
import { SizeField } from '../../parts/size-field';

export type Limits = Pick<VolumeDraft, 'readIOPS' | 'writeIOPS' | 'readRate' | 'writeRate'>;

export function LimitFields({ limits, set }: { limits: Limits; set: (l: Partial<Limits>) => void }) {
  const { t } = useText();
  return (
    <div className="basalt-stack">
      <p className="basalt-note">{t('vol.limitsHelp')}</p>
      <div className="basalt-halves">
        {(['readIOPS', 'writeIOPS'] as const).map((k) => (
          <Field key={k} id={`vol-${k}`} label={t(`vol.${k}`)} path={`spec.qos.${k}`}>
            <TextInput
              id={`vol-${k}`}
              type="number"
              min={0}
              step={1}
              value={limits[k]}
              onChange={(_, v) => set({ [k]: v })}
            />
          </Field>
        ))}
        <SizeField
          id="vol-readRate"
          label={t('vol.readRate')}
          path="spec.qos.readBytesPerSecond"
          size={limits.readRate}
          set={(readRate) => set({ readRate })}
        />
        <SizeField
          id="vol-writeRate"
          label={t('vol.writeRate')}
          path="spec.qos.writeBytesPerSecond"
          size={limits.writeRate}
          set={(writeRate) => set({ writeRate })}
        />
      </div>
    </div>
  );
}
