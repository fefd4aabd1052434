// The members of a group, which are added and removed one by one: nobody else's changes are lost.
import { Button } from '@patternfly/react-core';
import { useState } from 'react';
import { useChangeMembers, useGroup, type Group } from '../api/groups';
import { useText } from '../i18n';
import { asCommand, changeAsCurl } from '../lib/shell';
import { groups } from '../api/resource';
import { ErrorAlert } from '../parts/error';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';
import { addressesIn } from './group';

interface Props {
  group: Group;
  /** The addresses of the organization's users by their IDs. */
  names: Map<string, string>;
  onClose: () => void;
}

export function GroupMembers({ group: given, names, onClose }: Props) {
  const { t } = useText();
  const group = useGroup(given);
  const [text, setText] = useState('');
  const add = useChangeMembers(group, () => setText(''));
  const remove = useChangeMembers(group);
  const members = group.spec.members ?? [];
  const local = !group.spec.source || group.spec.source === 'local';
  const added = addressesIn(text);
  const body: Group = { ...group, spec: { ...group.spec, members: [...members, ...added] } };
  const nameOf = (id: string) => names.get(id) ?? id;
  return (
    <FormDialog
      title={t('grp.membersOf', { name: group.meta.name })}
      help={t(local ? 'grp.membersOfHelp' : 'grp.membersElsewhere')}
      action={t('mem.add')}
      leave={t('common.close')}
      disabled={!local}
      busy={add.isPending}
      error={add.error}
      schema="Group"
      body={body}
      onSubmit={() => add.mutate({ add: added })}
      onClose={onClose}
    >
      <ErrorAlert error={remove.error} onClose={remove.reset} />
      {members.length === 0 ? (
        <p>{t('grp.noMembers')}</p>
      ) : (
        <ul className="basalt-plain" aria-label={t('grp.members')}>
          {[...members]
            .sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
            .map((id) => (
              <li key={id} className="basalt-between">
                <span className="basalt-breaks">{nameOf(id)}</span>
                {local && (
                  <Button
                    variant="link"
                    isInline
                    isDanger
                    aria-label={t('grp.removeMember', { name: nameOf(id) })}
                    isDisabled={remove.isPending}
                    onClick={() => remove.mutate({ remove: [id] })}
                  >
                    {t('price.remove')}
                  </Button>
                )}
              </li>
            ))}
        </ul>
      )}
      {local && (
        <>
          <TextField
            id="group-add"
            label={t('grp.addMembers')}
            help={t('grp.membersHelp')}
            path="spec.members"
            rows={2}
            value={text}
            onChange={setText}
            required
          />
          <Same
            cli={asCommand(['group', 'add-member', group.meta.name, ...(added.length > 0 ? added : ['E-MAIL'])])}
            curl={changeAsCurl(groups, group, body)}
          />
        </>
      )}
    </FormDialog>
  );
}
