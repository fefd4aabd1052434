// The hardware checks of a node: the worst first, with their meaning and advice. The texts are the node's own, in
// English; names and states are translated.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useText } from '../i18n';
import { checksOf, hardwareTones, type HardwareCheck, type Node } from '../lib/node';
import { Table, type Column } from '../parts/list-table';
import { ToneLabel } from '../parts/tone';

export function NodeHardware({ node }: { node: Node }) {
  const { t } = useText();
  const checks = checksOf(node);
  const columns: Column<HardwareCheck>[] = [
    { id: 'check', title: t('hardware.check'), cell: (c) => t(`hardware.${c.id}`) },
    {
      id: 'state',
      title: t('common.state'),
      cell: (c) => <ToneLabel tone={hardwareTones[c.state]} text={t(`hardware.${c.state}`)} />,
    },
    {
      id: 'found',
      title: t('hardware.found'),
      cell: (c) => (
        <>
          {[c.found, c.meaning, c.advice].filter(Boolean).map((text) => (
            <div key={text}>{text}</div>
          ))}
        </>
      ),
    },
  ];
  return (
    <Card>
      <CardTitle component="h2">{t('hardware.title')}</CardTitle>
      <CardBody>
        {checks.length === 0 ? (
          <p className="basalt-note">{t('hardware.none')}</p>
        ) : (
          <Table label={t('hardware.title')} items={checks} columns={columns} keyOf={(c) => c.id} />
        )}
      </CardBody>
    </Card>
  );
}
