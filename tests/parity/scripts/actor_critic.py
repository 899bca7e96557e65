"""Actor-critic with TensorArrays and a NumPy environment inside tf.function; REINFORCE by hand."""
import numpy as np, tensorflow as tf, collections
class Env:
    def __init__(self): self.r = np.random.RandomState(0)
    def reset(self): self.s = np.zeros(4, "float32"); self.t = 0; return self.s
    def step(self, a):
        self.s = np.clip(self.s + (0.1 if a else -0.1) + self.r.randn(4) * 0.01, -1, 1).astype(np.float32); self.t += 1
        return self.s, np.float32(self.s.mean()), self.t >= 10, {}
env = Env(); eps = np.finfo(np.float32).eps.item()
class ActorCritic(tf.keras.Model):
    def __init__(self, num_actions, num_hidden_units):
        super().__init__()
        self.common = tf.keras.layers.Dense(num_hidden_units, activation="relu"); self.actor = tf.keras.layers.Dense(num_actions); self.critic = tf.keras.layers.Dense(1)
    def call(self, inputs):
        x = self.common(inputs); return self.actor(x), self.critic(x)
model = ActorCritic(2, 16)
@tf.numpy_function(Tout=[tf.float32, tf.int32, tf.int32])
def env_step(action):
    state, reward, done, _ = env.step(action); return (state.astype(np.float32), np.array(reward, np.int32), np.array(done, np.int32))
def run_episode(initial_state, model, max_steps):
    ap = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True); vals = tf.TensorArray(dtype=tf.float32, size=0, dynamic_size=True); rew = tf.TensorArray(dtype=tf.int32, size=0, dynamic_size=True)
    shape = initial_state.shape; state = initial_state
    for t in tf.range(max_steps):
        state = tf.expand_dims(state, 0); logits, value = model(state)
        action = tf.random.categorical(logits, 1)[0, 0]; probs = tf.nn.softmax(logits)
        vals = vals.write(t, tf.squeeze(value)); ap = ap.write(t, probs[0, action])
        state, reward, done = env_step(action); state.set_shape(shape)
        rew = rew.write(t, reward)
        if tf.cast(done, tf.bool): break
    return ap.stack(), vals.stack(), rew.stack()
def get_expected_return(rewards, gamma, standardize=True):
    n = tf.shape(rewards)[0]; returns = tf.TensorArray(dtype=tf.float32, size=n)
    rewards = tf.cast(rewards[::-1], dtype=tf.float32); s = tf.constant(0.0); ss = s.shape
    for i in tf.range(n):
        reward = rewards[i]; s = reward + gamma * s; s.set_shape(ss); returns = returns.write(i, s)
    returns = returns.stack()[::-1]
    if standardize: returns = (returns - tf.math.reduce_mean(returns)) / (tf.math.reduce_std(returns) + eps)
    return returns
huber_loss = tf.keras.losses.Huber(reduction="sum"); optimizer = tf.keras.optimizers.Adam(0.01)
def compute_loss(ap, values, returns):
    adv = returns - values; lp = tf.math.log(ap); return -tf.math.reduce_sum(lp * adv) + huber_loss(values, returns)
@tf.function
def train_step(s0, model, optimizer, gamma, n):
    with tf.GradientTape() as tape:
        ap, values, rewards = run_episode(s0, model, n); returns = get_expected_return(rewards, gamma)
        ap, values, returns = [tf.expand_dims(x, 1) for x in [ap, values, returns]]
        loss = compute_loss(ap, values, returns)
    grads = tape.gradient(loss, model.trainable_variables); optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return tf.math.reduce_sum(rewards)
for i in range(5):
    s0 = tf.constant(env.reset(), dtype=tf.float32); er = int(train_step(s0, model, optimizer, 0.99, 20)); print(i, -20 < er < 20)
print(np.round(get_expected_return(tf.constant([1, 0, 2]), 0.9, False).numpy(), 4))
# REINFORCE classic
net = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu", input_shape=[4]), tf.keras.layers.Dense(1, activation="sigmoid")])
def play_one_step(env, obs, model, loss_fn):
    with tf.GradientTape() as tape:
        left_proba = model(obs[np.newaxis]); action = (tf.random.uniform([1, 1]) > left_proba)
        y_target = tf.constant([[1.]]) - tf.cast(action, tf.float32); loss = tf.reduce_mean(loss_fn(y_target, left_proba))
    grads = tape.gradient(loss, model.trainable_variables); obs, reward, done, info = env.step(int(action.numpy()[0, 0])); return obs, reward, done, grads
allg, allr = [], []
for ep in range(3):
    obs = env.reset(); gs, rs = [], []
    for s in range(10):
        obs, rw, d, g = play_one_step(env, obs, net, tf.keras.losses.binary_crossentropy); gs.append(g); rs.append(rw)
    allg.append(gs); allr.append(rs)
mean_grads = []
for vi in range(len(net.trainable_variables)):
    mean_grads.append(tf.reduce_mean([fr * allg[ei][st][vi] for ei, frs in enumerate(allr) for st, fr in enumerate(frs)], axis=0))
tf.keras.optimizers.Adam(0.01).apply_gradients(zip(mean_grads, net.trainable_variables)); print([g.shape for g in mean_grads])
