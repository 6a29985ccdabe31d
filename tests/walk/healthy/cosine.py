# a cosine schedule, gradients of several batches together, averaged weights that are evaluated at the end
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 2))
model = torch.compile(net)
average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
data, labels = torch.randn(45, 6), torch.randint(2, (45,))
for _ in range(3):
    for number, (x, y) in enumerate(zip(data.split(8), labels.split(8))):
        (nn.functional.cross_entropy(model(x), y) / 2).backward()
        if number % 2:
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            average.update_parameters(net)
    with torch.no_grad():
        print((model(data).argmax(1) == labels).sum().item())
with torch.no_grad():
    print((average(data).argmax(1) == labels).sum().item())
