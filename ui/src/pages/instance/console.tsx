// The end of what an instance's serial console wrote.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import type { Instance } from '../../api/client';
import { useConsoleLog } from '../../api/queries';
import { useText } from '../../i18n';
import { phaseOf } from '../../lib/phase';

export function Console({ instance }: { instance: Instance }) {
  const { t } = useText();
  const log = useConsoleLog(instance.meta.id ?? '', phaseOf(instance) === 'Running');
  return (
    <Card>
      <CardTitle component="h2">{t('one.log')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('one.logHelp')}</p>
        {/* Terminals' control characters say nothing here. */}
        {/* eslint-disable-next-line no-control-regex */}
        {log.data ? <pre className="basalt-log">{log.data.replace(/\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]/g, '')}</pre> : <p>{t('one.logEmpty')}</p>}
      </CardBody>
    </Card>
  );
}
