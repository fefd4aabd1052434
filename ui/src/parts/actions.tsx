// The actions of one row of a list, in a menu.
import { Dropdown, DropdownItem, DropdownList, MenuToggle } from '@patternfly/react-core';
import { EllipsisVIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { useText } from '../i18n';

export interface Action {
  text: string;
  run: () => void;
  danger?: boolean;
}

export function Actions({ of, actions }: { of: string; actions: (Action | false | undefined)[] }) {
  const { t } = useText();
  const [open, setOpen] = useState(false);
  const there = actions.filter((a) => Boolean(a)) as Action[];
  if (there.length === 0) return '–';
  return (
    <div className="basalt-menu">
      <Dropdown
        isOpen={open}
        onOpenChange={setOpen}
        popperProps={{ position: 'end', appendTo: 'inline' }}
        toggle={(ref) => (
          <MenuToggle
            ref={ref}
            variant="plain"
            icon={<EllipsisVIcon />}
            isExpanded={open}
            aria-label={`${t('common.actions')}: ${of}`}
            onClick={() => setOpen(!open)}
          />
        )}
      >
        <DropdownList>
          {there.map((a) => (
            <DropdownItem key={a.text} isDanger={a.danger} onClick={() => (setOpen(false), a.run())}>
              {a.text}
            </DropdownItem>
          ))}
        </DropdownList>
      </Dropdown>
    </div>
  );
}
