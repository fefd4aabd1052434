// Changes an image's name, and what is known of it.
import type { Schemas } from '../api/client';
import { images } from '../api/resource';
import { useText, type Key } from '../i18n';
import { asCommand } from '../lib/shell';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';
import { abilitiesOf, AbilityFields, abilityFlags, abilitySpec, type Abilities } from './image-abilities';

type Image = Schemas['Image'];

interface Form extends Abilities {
  name: string;
}

const labels: Record<keyof Form, Key> = {
  name: 'common.name',
  vgpu: 'img.vgpu',
  guestAgent: 'img.agent',
  os: 'mach.os',
  osName: 'img.osName',
  defaultUser: 'img.user',
};

const formOf = (i: Image | undefined): Form => ({ name: i?.meta.name ?? '', ...abilitiesOf(i?.spec) });

export function EditImage({ image, onClose }: { image: Image; onClose: () => void }) {
  const { t } = useText();
  const edit = useEdit<Image, Form>({
    of: images,
    object: image,
    fields: formOf,
    body: (i, f) => ({
      kind: 'Image',
      meta: { ...i?.meta, name: f.name.trim() },
      spec: { ...(i ?? image).spec, ...abilitySpec(f, i?.spec) }, // what the form does not show stays
    }),
    onSaved: onClose,
  });
  const { form, body } = edit;
  return (
    <FormDialog
      title={t('pool.changeTitle', { name: image.meta.name })}
      action={t('op.save')}
      busy={edit.busy}
      disabled={edit.gone || !edit.edited}
      error={edit.error}
      schema="Image"
      body={body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <TextField
        id="image-name"
        label={t('common.name')}
        help={t('new.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={edit.set('name')}
        required
      />
      <AbilityFields form={form} set={(field, v) => edit.set(field)(v)} />
      <Same
        cli={asCommand(['image', 'set', image.meta.name], {
          name: body.meta.name === image.meta.name ? undefined : body.meta.name,
          ...abilityFlags(body.spec, image.spec),
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
