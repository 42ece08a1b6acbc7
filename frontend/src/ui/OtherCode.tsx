import { Button, Modal } from "@mantine/core";

interface OtherCodeProps {
  /** The server's refusal, which names both codes; `null` while the dialog is closed. */
  refusal: string | null;
  onClose(): void;
  onAllow(): void;
}

/** Asks whether to continue with workers whose code differs from the experiment's. */
export function OtherCode({ refusal, onClose, onAllow }: OtherCodeProps) {
  return (
    <Modal opened={refusal !== null} onClose={onClose} title="The code has changed">
      <p>{refusal}</p>
      <p style={{ marginTop: 8 }}>
        Install the experiment's code on a worker, or continue with the code that the workers have.
        The attempts of the run then show which code they ran with.
      </p>
      <div className="row" style={{ justifyContent: "flex-end", marginTop: 20 }}>
        <Button variant="default" onClick={onClose} data-autofocus>
          Cancel
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
