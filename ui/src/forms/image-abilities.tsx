// What is known of an image: its operating system, whether it can use a virtual GPU, whether it has a guest agent, and
// its default user.
import type { Schemas } from '../api/client';
import { useText } from '../i18n';
import { SelectField, TextField } from '../parts/text-field';

type Spec = Schemas['ImageSpec'];
type Can = NonNullable<Spec['abilities']>;

/** Abilities are the form's fields; empty means unknown. */
export interface Abilities {
  vgpu: NonNullable<Can['vgpu']> | '';
  guestAgent: NonNullable<Can['guestAgent']> | '';
  os: NonNullable<Can['os']> | '';
  osName: string;
  defaultUser: string;
}

export const abilitiesOf = (s: Spec | undefined): Abilities => ({
  vgpu: s?.abilities?.vgpu ?? '',
  guestAgent: s?.abilities?.guestAgent ?? '',
  os: s?.abilities?.os ?? '',
  osName: s?.abilities?.osName ?? '',
  defaultUser: s?.defaultUser ?? '',
});

/** abilitySpec returns the fields of a spec for the form's; was are those that the image has. */
export function abilitySpec(f: Abilities, was?: Spec): Pick<Spec, 'abilities' | 'defaultUser'> {
  const osName = f.osName.trim();
  const known = f.vgpu || f.guestAgent || f.os || osName || was?.abilities;
  return {
    abilities: known
      ? {
          ...was?.abilities,
          vgpu: f.vgpu || undefined,
          guestAgent: f.guestAgent || undefined,
          os: f.os || undefined,
          osName: osName || undefined,
        }
      : undefined,
    defaultUser: f.defaultUser.trim() || undefined,
  };
}

/** abilityFlags returns the command's flags; with those of an image that has some, an empty one clears it. */
export function abilityFlags(s: Spec, was?: Spec): Record<string, string | boolean | undefined> {
  const flag = (name: string, now: string | undefined, before: string | undefined) => ({
    [name]: now,
    [`${name}=`]: Boolean(before) && !now,
  });
  return {
    ...flag('vgpu', s.abilities?.vgpu, was?.abilities?.vgpu),
    ...flag('guest-agent', s.abilities?.guestAgent, was?.abilities?.guestAgent),
    ...flag('os', s.abilities?.os, was?.abilities?.os),
    ...flag('os-name', s.abilities?.osName, was?.abilities?.osName),
    ...flag('default-user', s.defaultUser, was?.defaultUser),
  };
}

interface Props {
  form: Abilities;
  set: (field: keyof Abilities, value: string) => void;
}

export function AbilityFields({ form, set }: Props) {
  const { t } = useText();
  const unknown: [string, string] = ['', t('img.unknown')];
  return (
    <>
      <SelectField
        id="image-os"
        label={t('mach.os')}
        help={t('img.osHelp')}
        path="spec.abilities.os"
        value={form.os}
        onChange={(v) => set('os', v)}
        options={[unknown, ['linux', 'Linux'], ['windows', 'Windows'], ['other', t('img.osOther')]]}
      />
      <TextField
        id="image-os-name"
        label={t('img.osName')}
        help={t('img.osNameHelp')}
        path="spec.abilities.osName"
        value={form.osName}
        onChange={(v) => set('osName', v)}
      />
      <SelectField
        id="image-vgpu"
        label={t('img.vgpu')}
        help={t('img.vgpuHelp')}
        path="spec.abilities.vgpu"
        value={form.vgpu}
        onChange={(v) => set('vgpu', v)}
        options={[
          unknown,
          ...(['supported', 'new-kernel', 'unsupported'] as const).map((v): [string, string] => [
            v,
            t(`img.vgpu.${v}`),
          ]),
        ]}
      />
      <SelectField
        id="image-agent"
        label={t('img.agent')}
        help={t('img.agentHelp')}
        path="spec.abilities.guestAgent"
        value={form.guestAgent}
        onChange={(v) => set('guestAgent', v)}
        options={[unknown, ...(['present', 'absent'] as const).map((v): [string, string] => [v, t(`img.agent.${v}`)])]}
      />
      <TextField
        id="image-user"
        label={t('img.user')}
        help={t('img.userHelp')}
        path="spec.defaultUser"
        value={form.defaultUser}
        onChange={(v) => set('defaultUser', v)}
      />
    </>
  );
}
