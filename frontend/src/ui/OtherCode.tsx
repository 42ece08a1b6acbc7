import { Button, Modal } from "@mantine/core";

interface OtherCodeProps {
  /** The server's refusal, which names both codes; `null` while nothing is asked. */
  refusal: string | null;
  onClose(): void;
  onAllow(): void;
}

/** Asks whether to go on although the workers have other code than the experiment was made with. */
export function OtherCode({ refusal, onClose, onAllow }: OtherCodeProps) {
  return (
    <Modal opened={refusal !== null} onClose={onClose} title="The code has changed">
      <p>{refusal}</p>
      <p style={{ marginTop: 8 }}>
        Install the experiment's code on a worker to go on with it, or go on with the code that the
        workers have. The run then says which code it ran with.
      </p>
      <div className="row" style={{ justifyContent: "flex-end", marginTop: 20 }}>
        <Button variant="default" onClick={onClose} data-autofocus>
          Leave it
        </Button>
        <Button
          onClick={() => {
            onClose();
            onAllow();
          }}
        >
          Go on with the changed code
        </Button>
      </div>
    </Modal>
  );
}
