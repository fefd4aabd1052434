// A slice of a custom size, and its tier.
import { FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { useText } from '../../i18n';
import type { Draft } from '../../lib/draft';
import { tiers } from '../../lib/tier';
import { Field } from '../../parts/field';

interface Props {
  draft: Draft;
  set: (d: Draft) => void;
}

export function OwnSlice({ draft, set }: Props) {
  const { t } = useText();
  return (
    <>
      <Field id="new-tier" label={t('new.tier')} help={t('new.tierHelp')} path="spec.vgpu.tier">
        <FormSelect
          id="new-tier"
          value={draft.tier}
          onChange={(_, tier) => set({ ...draft, tier: tier as Draft['tier'] })}
        >
          {tiers.map((tier) => (
            <FormSelectOption key={tier} value={tier === 'standard' ? '' : tier} label={t(`tier.${tier}`)} />
          ))}
        </FormSelect>
      </Field>
      <Field id="new-vram" label={t('new.vram')} path="spec.vgpu.vramBytes" required>
        <TextInput
          id="new-vram"
          type="number"
          min={0.0625}
          max={1024}
          step="any"
          isRequired
          value={draft.vramGib}
          onChange={(_, vramGib) => set({ ...draft, vramGib })}
        />
      </Field>
      <Field id="new-share" label={t('new.share')} help={t('new.shareHelp')} path="spec.vgpu.sharePercent">
        <TextInput
          id="new-share"
          type="number"
          min={0}
          max={100}
          step={1}
          isRequired
          value={draft.share}
          onChange={(_, share) => set({ ...draft, share })}
        />
      </Field>
    </>
  );
}
